"""The `Task` of text classification (N → 1) and sequence tagging (N → N).

    runs/mine/  recipe.yaml   log.jsonl   checkpoints/   labels/   model/

`tasks/run.py` calls it. The loss is in `objective.py`, the encoded data in `data.py`.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from headwise.data.batching import ALL_ROWS, Share
from headwise.data.labels.labelled_files import Labelled
from headwise.data.labels.labelled_rows import LabelledRows
from headwise.data.splits import Part
from headwise.language import say
from headwise.models.labeller import LabelModel
from headwise.randomness import torch_generator
from headwise.storage import read_json
from headwise.tasks.bundle import save_tokenizer
from headwise.tasks.comparison_metrics import ComparisonMetrics
from headwise.tasks.events import Events, Silence
from headwise.tasks.labels.bundle import LABELS, new_labeller
from headwise.tasks.labels.data import PreparedLabels, prepare_labels
from headwise.tasks.labels.labeller import Labeller
from headwise.tasks.labels.measured_part import FOLDER, label_comparison_metrics, label_part
from headwise.tasks.labels.objective import LabelLoss, plan_step, validation
from headwise.tasks.labels.recipe import LabelRecipe
from headwise.tasks.planned_step import PlannedStep, find_vocabularies
from headwise.tasks.pretraining.encoder_start import Start, find_start
from headwise.tasks.pretraining.vector_start import VectorStart
from headwise.tasks.recurrent_training import check_word_by_word
from headwise.tasks.result_rows import part_name
from headwise.tasks.table import name_task
from headwise.tasks.task import Learner, TrainedTask, rows_of_batch
from headwise.tasks.training_cost import Trial, first_batch

ASSUMED_TAGS = 17
"""Classes of a tagger that a plan assumes: the universal parts of speech."""


@dataclass(frozen=True)
class LabelData:
    """Encoded examples, and the pre-trained encoder to start from, if any."""

    examples: PreparedLabels
    start: Start | VectorStart | None


class LabelTask(TrainedTask[LabelRecipe, LabelData]):
    """Learn a label for each text, or a tag for each word."""

    def prepare(self, recipe: LabelRecipe, directory: Path, watcher: Events) -> LabelData:
        start = find_start(recipe.model, recipe.text)
        tokenizer = None if start is None else start.tokenizer
        return LabelData(prepare_labels(recipe, watcher, tokenizer=tokenizer), start)

    def sizes(self, recipe: LabelRecipe, prepared: LabelData) -> dict[str, Any]:
        form = prepared.examples.form
        return {
            "examples": prepared.examples.num_examples,
            "classes": len(form.labels),
            "vocabulary": form.tokenizer.size,
        }

    def build(self, recipe: LabelRecipe, prepared: LabelData) -> LabelModel:
        form = prepared.examples.form
        model = new_labeller(
            recipe,
            size=form.tokenizer.size,
            num_classes=len(form.labels),
            generator=torch_generator(recipe.training.seed, "weights"),
        )
        if prepared.start is not None:
            prepared.start.put_into(model.encoder)
        return model

    def check_training(self, recipe: LabelRecipe) -> None:
        if recipe.model.kind == "elmo":
            check_word_by_word(recipe.training, "elmo")

    def planned_step(self, recipe: LabelRecipe, bundle: Path | None = None) -> PlannedStep:
        """Which classes there are only the data says: two, or the usual tags, are assumed."""
        num_classes = 2 if recipe.shape == "one" else ASSUMED_TAGS
        if bundle is not None:
            num_classes = len(read_json(bundle / LABELS))
        size = find_vocabularies(recipe.text.size, bundle).target
        return plan_step(recipe, size=size, num_classes=num_classes)

    def learner(
        self,
        recipe: LabelRecipe,
        prepared: LabelData,
        module: nn.Module,
        *,
        share: Share,
        directory: Path,
    ) -> Learner:
        assert isinstance(module, LabelModel)
        loss = LabelLoss(module, recipe.training.objective.label_smoothing)
        rows = rows_of_batch(recipe.training.batch_tokens, recipe.data.row_tokens)
        batches = _batches(recipe, prepared, rows, share)
        evaluate = validation(loss, prepared.examples)
        return Learner(loss, batches, recipe.training_as_run, evaluate)

    def count_tokens(self, recipe: LabelRecipe, prepared: LabelData) -> int:
        return len(prepared.examples.train.tokens)

    def trial(self, recipe: LabelRecipe, prepared: LabelData, module: nn.Module) -> Trial:
        assert isinstance(module, LabelModel)
        return Trial(
            LabelLoss(module, recipe.training.objective.label_smoothing),
            rows_of_batch(recipe.training.batch_tokens, recipe.data.row_tokens),
            lambda rows: first_batch(_batches(recipe, prepared, rows, ALL_ROWS)),
        )

    def describe_start(
        self, recipe: LabelRecipe, prepared: LabelData, module: nn.Module | None
    ) -> str:
        assert module is not None
        sizes = self.sizes(recipe, prepared)
        examples, classes, vocabulary = sizes.values()
        parameters = sum(parameter.numel() for parameter in module.parameters())
        return say(
            f"{name_task(recipe.task)}: {examples:,} examples of {classes} classes, vocabulary "
            f"{vocabulary:,}, {parameters:,} parameters; {recipe.training.steps:,} steps",
            f"{name_task(recipe.task)}：{examples:,} 个样本，{classes} 个类别，"
            f"词表 {vocabulary:,}，参数 {parameters:,}；共 {recipe.training.steps:,} 步",
        )

    def measure(
        self,
        recipe: LabelRecipe,
        prepared: LabelData,
        model: Any,
        *,
        watcher: Events,
        directory: Path | None,
    ) -> dict[str, Any]:
        """Accuracy and the table of classes; the labels found are kept in the run's directory."""
        results: dict[str, Any] = {}
        examples = prepared.examples
        named: tuple[tuple[Part, tuple[Labelled, ...]], ...] = (
            ("valid", examples.valid),
            ("test", examples.test),
        )
        for part, given in named:
            if given:
                watcher.note(
                    say(f"measuring on the {part_name(part)} …", f"正在评测{part_name(part)}……")
                )
                answered = label_part(model, examples.form, given)
                results[part] = answered.as_dict()
                if directory is not None:
                    answered.save(directory / FOLDER, part)
        return results

    def comparison_metrics(self, recipe: LabelRecipe) -> ComparisonMetrics:
        return label_comparison_metrics(recipe)

    def check_data(self, recipe: LabelRecipe) -> None:
        """Labelled files are small and are read whole, since every run reads all of them."""
        self.prepare(recipe, Path(), Silence())

    def save_parts(self, recipe: LabelRecipe, prepared: LabelData, directory: Path) -> None:
        form = prepared.examples.form
        save_tokenizer(form.tokenizer, directory)
        text = json.dumps(list(form.labels), ensure_ascii=False)
        (directory / LABELS).write_text(text, encoding="utf-8")

    def title(self, recipe: LabelRecipe) -> str:
        return f"{recipe.task.capitalize()}, {recipe.data.language}"

    def card_details(self, recipe: LabelRecipe, prepared: LabelData) -> str:
        classes = ", ".join(prepared.examples.form.labels)
        return f"Model: {recipe.model.kind}, width {recipe.model.dim}. Classes: {classes}."

    def card_use(self, recipe: LabelRecipe) -> str:
        answer = "label" if recipe.shape == "one" else "labels"
        return f"""```python
import headwise
labeller = headwise.Labeller.load("DIR OF THIS FILE")
print(labeller(["…"])[0].{answer})
```"""

    def load(self, directory: Path) -> Labeller:
        return Labeller.load(directory)


def _batches(recipe: LabelRecipe, prepared: LabelData, rows: int, share: Share) -> LabelledRows:
    examples = prepared.examples
    row_tokens, seed = recipe.data.row_tokens, recipe.training.seed
    return LabelledRows(examples.train, rows, row_tokens, seed, examples.fingerprint, share)
