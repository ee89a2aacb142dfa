"""The `Task` of masked language modelling. Classifiers and taggers can start from its encoder.

    runs/mine/  recipe.yaml   log.jsonl   checkpoints/   model/

`tasks/run.py` calls it. Loss, batches and validation are in `masked_objective.py`.
"""

from pathlib import Path
from typing import Any

from torch import nn

from headwise.data.batching import ALL_ROWS, Share
from headwise.data.splits import Part
from headwise.evaluation.item_means import MeanStatistics, percent
from headwise.evaluation.several_seeds import Statistics
from headwise.language import say
from headwise.models.masked_language_model import MaskedLanguageModel, build_masked_language_model
from headwise.randomness import torch_generator
from headwise.tasks.comparison_metrics import ComparisonMetrics, declared_metric
from headwise.tasks.events import Events
from headwise.tasks.item_scores import read_item_scores
from headwise.tasks.planned_step import PlannedStep, find_vocabularies
from headwise.tasks.pretraining.gap_filling import GapFiller
from headwise.tasks.pretraining.line_scores import save_masked_lines
from headwise.tasks.pretraining.masked_objective import (
    MaskedData,
    MaskedLoss,
    make_batches,
    plan_step,
    prepare_masked,
    validation,
)
from headwise.tasks.pretraining.masked_recipe import MaskedRecipe
from headwise.tasks.pretraining.pretraining_task import PretrainingTask
from headwise.tasks.task import Learner, rows_of_batch
from headwise.tasks.text_comparison_metrics import text_comparison_metrics
from headwise.tasks.training_cost import Trial, first_batch
from headwise.training.session import Evaluate


class MaskedTask(PretrainingTask[MaskedRecipe, MaskedData]):
    """Learn to guess masked tokens from both sides."""

    def prepare(self, recipe: MaskedRecipe, directory: Path, watcher: Events) -> MaskedData:
        return prepare_masked(recipe, watcher)

    def sizes(self, recipe: MaskedRecipe, prepared: MaskedData) -> dict[str, Any]:
        return {
            "lines": len(prepared.train),
            "tokens": len(prepared.train.tokens),
            "vocabulary": prepared.tokenizer.size,
        }

    def build(self, recipe: MaskedRecipe, prepared: MaskedData) -> MaskedLanguageModel:
        model = build_masked_language_model(
            recipe.model,
            vocabulary_size=prepared.tokenizer.size,
            has_pairs=recipe.second_task == "next_sentence",
            generator=torch_generator(recipe.training.seed, "weights"),
        )
        if prepared.start is not None:
            prepared.start.put_into(model.encoder)
            prepared.start.put_heads_into(model)
        return model

    def planned_step(self, recipe: MaskedRecipe, bundle: Path | None = None) -> PlannedStep:
        return plan_step(recipe, find_vocabularies(recipe.text.size, bundle))

    def validation(
        self, recipe: MaskedRecipe, prepared: MaskedData, module: nn.Module
    ) -> Evaluate | None:
        assert isinstance(module, MaskedLanguageModel)
        return validation(recipe, prepared, MaskedLoss(module, 0.0))

    def save_lines(
        self, recipe: MaskedRecipe, prepared: MaskedData, model: Any, part: Part, directory: Path
    ) -> None:
        save_masked_lines(recipe, prepared, model, part, directory)

    def comparison_metrics(self, recipe: MaskedRecipe) -> ComparisonMetrics:
        """By the loss of a masked token; which tokens are masked is fixed (line_scores.py)."""

        def read(directory: Path, part: Part) -> dict[str, Statistics]:
            kept = read_item_scores(directory, part, ("loss", "correct", "tokens"))
            return {
                "loss": MeanStatistics.of(kept["loss"], kept["tokens"]),
                "accuracy": MeanStatistics.of(kept["correct"], kept["tokens"], percent),
            }

        metrics = tuple(declared_metric(recipe, key) for key in ("loss", "accuracy"))
        return text_comparison_metrics(recipe.data, recipe.text, metrics=metrics, read=read)

    def learner(
        self,
        recipe: MaskedRecipe,
        prepared: MaskedData,
        module: nn.Module,
        *,
        share: Share,
        directory: Path,
    ) -> Learner:
        assert isinstance(module, MaskedLanguageModel)
        loss = MaskedLoss(module, recipe.training.objective.label_smoothing)
        rows = rows_of_batch(recipe.training.batch_tokens, recipe.data.row_tokens)
        batches = make_batches(recipe, prepared, rows, share)
        return Learner(loss, batches, recipe.training, validation(recipe, prepared, loss))

    def count_tokens(self, recipe: MaskedRecipe, prepared: MaskedData) -> int:
        return len(prepared.train.tokens)

    def trial(self, recipe: MaskedRecipe, prepared: MaskedData, module: nn.Module) -> Trial:
        assert isinstance(module, MaskedLanguageModel)
        return Trial(
            MaskedLoss(module, recipe.training.objective.label_smoothing),
            rows_of_batch(recipe.training.batch_tokens, recipe.data.row_tokens),
            lambda rows: first_batch(make_batches(recipe, prepared, rows, ALL_ROWS)),
        )

    def describe_start(
        self, recipe: MaskedRecipe, prepared: MaskedData, module: nn.Module | None
    ) -> str:
        assert module is not None
        lines, tokens, vocabulary = self.sizes(recipe, prepared).values()
        parameters = sum(parameter.numel() for parameter in module.parameters())
        steps = recipe.training.steps
        return say(
            f"{recipe.data.language}: {lines:,} lines, {tokens:,} tokens, "
            f"vocabulary {vocabulary:,}; {parameters:,} parameters; {steps:,} steps",
            f"{recipe.data.language}：{lines:,} 行，{tokens:,} 词元，"
            f"词表 {vocabulary:,}；参数 {parameters:,}；共 {steps:,} 步",
        )

    def title(self, recipe: MaskedRecipe) -> str:
        return f"Masked language model, {recipe.data.language}"

    def card_use(self, recipe: MaskedRecipe) -> str:
        return """```python
from headwise.tasks.pretraining.gap_filling import GapFiller
filler = GapFiller.load("DIR OF THIS FILE")
print(filler.predict("… ____ …"))
```
Another recipe starts from it with `model.start_from: DIR OF THIS FILE`."""

    def load(self, directory: Path) -> GapFiller:
        return GapFiller.load(directory)
