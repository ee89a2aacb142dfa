"""`PretrainingTask`: the base class of the pre-training tasks (masked language models, ELMo).

The finished model is measured as in every validation during training, and line by line for
comparisons (line_scores.py). The bundle holds a tokenizer and an empty `labels.json`, because a
pre-trained encoder is saved like a classifier (tasks/labels/bundle.py).
"""

from abc import abstractmethod
from pathlib import Path
from typing import Any, Protocol, TypeVar

from torch import nn

from headwise.data.splits import Part
from headwise.language import say
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.bundle import save_tokenizer
from headwise.tasks.events import Events
from headwise.tasks.result_rows import part_name
from headwise.tasks.task import TrainedTask
from headwise.tasks.text_comparison_metrics import scored_part
from headwise.text.tokenizer import Tokenizer
from headwise.training.session import Evaluate

LABELS = "labels.json"


class PretrainingData(Protocol):
    """Prepared text of any of these tasks."""

    @property
    def tokenizer(self) -> Tokenizer: ...


RecipeType = TypeVar("RecipeType", bound=AnyRecipe)
Data = TypeVar("Data", bound=PretrainingData)


class PretrainingTask(TrainedTask[RecipeType, Data]):
    """Learn an encoder from plain text, for other tasks to start from."""

    @abstractmethod
    def validation(self, recipe: RecipeType, prepared: Data, module: nn.Module) -> Evaluate | None:
        """What a validation measures; None without validation data."""

    @abstractmethod
    def save_lines(
        self, recipe: RecipeType, prepared: Data, model: Any, part: Part, directory: Path
    ) -> None:
        """Write what each line of a part adds to the score into the run directory."""

    def measure(
        self,
        recipe: RecipeType,
        prepared: Data,
        model: Any,
        *,
        watcher: Events,
        directory: Path | None,
    ) -> dict[str, Any]:
        part = scored_part(recipe.corpora_settings)
        if directory is not None and part is not None:
            watcher.note(
                say(f"measuring on the {part_name(part)} …", f"正在评测{part_name(part)}……")
            )
            self.save_lines(recipe, prepared, model, part, directory)
        evaluate = self.validation(recipe, prepared, model)
        if evaluate is None:
            return {}
        return {f"valid_{name}": round(value, 6) for name, value in evaluate(0).items()}

    def save_parts(self, recipe: RecipeType, prepared: Data, directory: Path) -> None:
        save_tokenizer(prepared.tokenizer, directory)
        (directory / LABELS).write_text("[]", encoding="utf-8")

    def card_details(self, recipe: RecipeType, prepared: Data) -> str:
        model = recipe.model  # type: ignore[attr-defined]
        return f"Model: {model.kind}, width {model.dim}."
