"""A classifier or tagger from recipe to bundle, by the ordinary training loop: log, checkpoints, resume, best validation.

loss(batch) = smoothed cross-entropy of the labels, summed over the tokens that have one

runs/mine/  recipe.yaml   log.jsonl   checkpoints/   model/
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from headwise.data.batching import Share
from headwise.data.labelled_files import Labelled
from headwise.data.labelled_rows import LabelledRows, RowBatch, rows_in_order
from headwise.data.splitting import Part
from headwise.language import say
from headwise.models.labeller import Labeller
from headwise.randomness import torch_generator
from headwise.tasks.arguments import require_path
from headwise.tasks.encoder_start import Start, find_start
from headwise.tasks.events import Events, Silence
from headwise.tasks.label_bundle import new_labeller, save_encoder_bundle
from headwise.tasks.label_data import PreparedLabels, prepare_labels
from headwise.tasks.label_recipe import LabelRecipe
from headwise.tasks.labelled_part import FOLDER, label_part
from headwise.tasks.labeller import logits_of, score_examples
from headwise.tasks.result_rows import part_name
from headwise.tasks.run_beginning import RunSummary, begin_run
from headwise.tasks.training_cost import first_batch, measure_cost
from headwise.tasks.vector_start import VectorStart
from headwise.training.loop import train as run_training
from headwise.training.losses import LossSums
from headwise.training.precision import choose_device
from headwise.training.processes import join_processes
from headwise.training.progress import TrainingResult


@dataclass(frozen=True)
class LabelTask:
    """A model and its objective, as the training loop wants them."""

    module: Labeller
    label_smoothing: float

    def loss(self, batch: RowBatch) -> LossSums:
        logits = logits_of(self.module, batch, batch.tokens.device).flatten(0, 1).float()
        targets = batch.targets.flatten()
        scores = F.log_softmax(logits, dim=-1)
        counted = targets != 0
        certain = (
            scores.gather(1, (targets - 1).clamp(min=0)[:, None])[:, 0]
            .masked_fill(~counted, 0)
            .sum()
        )
        even = scores.mean(-1).masked_fill(~counted, 0).sum()
        smoothing = self.label_smoothing
        return LossSums(
            -(1 - smoothing) * certain - smoothing * even, -certain.detach(), counted.sum()
        )


def train_labels(
    recipe: LabelRecipe, *, run: Path | str, resume: bool = False, events: Events | None = None
) -> RunSummary:
    """Learn by a recipe in a run directory; the bundle ends up in `run/model`."""
    watcher = events or Silence()
    directory = require_path(run, "run", "runs/mine")
    choose_device(recipe.training.device)
    with join_processes() as processes:
        opened = None
        if processes.is_first:
            opened, (start, prepared) = begin_run(
                directory, recipe, lambda: _prepare(recipe, watcher), resume=resume
            )
        processes.ask_first(lambda: None)
        try:
            if opened is None:
                start, prepared = _prepare(recipe, Silence())
            model = _new_model(recipe, prepared, start)
            watcher.note(_describe(recipe, prepared, model))
            task = LabelTask(model, recipe.training.objective.label_smoothing)
            share = Share(processes.number, processes.count, recipe.training.accumulation)
            batches = LabelledRows(
                prepared.train,
                num_rows(recipe.training.batch_tokens, recipe.data.row_tokens),
                recipe.data.row_tokens,
                recipe.training.seed,
                prepared.fingerprint,
                share,
            )
            outcome = run_training(
                task,
                batches,
                recipe.training_as_run,
                opened,
                evaluate=_evaluation(task, prepared),
                progress=watcher.training,
                processes=processes,
            )
            folder = None if opened is None else directory
            results = training_results(model, outcome) | _measure(
                model.eval(), prepared, watcher, folder
            )
            if opened is not None:
                save_encoder_bundle(
                    opened.model,
                    recipe=recipe,
                    tokenizer=prepared.form.tokenizer,
                    labels=prepared.form.labels,
                    model=model,
                    results=results,
                )
        finally:
            if opened is not None:
                opened.close()
    return RunSummary(directory, recipe, results)


def check_label_run(recipe: LabelRecipe, *, events: Events | None = None) -> RunSummary:
    """Read the data of a recipe and build its model, but train nothing."""
    choose_device(recipe.training.device)
    watcher = events or Silence()
    start, prepared = _prepare(recipe, watcher)
    model = _new_model(recipe, prepared, start)
    training, row = recipe.training_as_run, recipe.data.row_tokens

    def batch_of(count: int) -> Any:
        share = Share(accumulation=training.accumulation)
        return first_batch(
            LabelledRows(prepared.train, count, row, training.seed, prepared.fingerprint, share)
        )

    rows = num_rows(training.batch_tokens, row)
    cost = measure_cost(
        LabelTask(model, training.objective.label_smoothing), batch_of, rows=rows, training=training
    )
    results = {
        "examples": prepared.num_examples,
        "classes": len(prepared.form.labels),
        "vocabulary": prepared.form.tokenizer.size,
        **cost.tell(watcher),
    }
    return RunSummary(None, recipe, results)


def _prepare(
    recipe: LabelRecipe, watcher: Events
) -> tuple[Start | VectorStart | None, PreparedLabels]:
    start = find_start(recipe.model, recipe.text)
    return start, prepare_labels(
        recipe, watcher, tokenizer=None if start is None else start.tokenizer
    )


def _new_model(
    recipe: LabelRecipe, prepared: PreparedLabels, start: Start | VectorStart | None
) -> Labeller:
    model = new_labeller(
        recipe,
        size=prepared.form.tokenizer.size,
        num_classes=len(prepared.form.labels),
        generator=torch_generator(recipe.training.seed, "weights"),
    )
    if start is not None:
        start.put_into(model.encoder)
    return model


def num_rows(batch_tokens: int, row_tokens: int) -> int:
    return max(1, round(batch_tokens / row_tokens))


def count_parameters(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def _describe(recipe: LabelRecipe, prepared: PreparedLabels, model: Labeller) -> str:
    examples, classes, parameters = (
        prepared.num_examples,
        len(prepared.form.labels),
        count_parameters(model),
    )
    return say(
        f"{recipe.task}: {examples:,} examples of {classes} classes, vocabulary {prepared.form.tokenizer.size:,}, "
        f"{parameters:,} parameters; {recipe.training.steps:,} steps",
        f"{recipe.task}：{examples:,} 个样本，{classes} 个类别，词表 {prepared.form.tokenizer.size:,}，"
        f"参数 {parameters:,}；共 {recipe.training.steps:,} 步",
    )


def _evaluation(
    task: LabelTask, prepared: PreparedLabels
) -> Callable[[int], Mapping[str, float]] | None:
    """What the loop calls to validate: loss and accuracy."""
    if not prepared.valid:
        return None
    form = prepared.form
    store = form.encode(
        [one.words for one in prepared.valid], [one.labels for one in prepared.valid]
    )

    @torch.inference_mode()
    def evaluate(step: int) -> Mapping[str, float]:
        device = task.module.output.weight.device
        totals = torch.zeros(2, dtype=torch.float64)
        for batch, _ in rows_in_order(store, rows=32, row_tokens=form.row_tokens):
            logits = (
                logits_of(task.module, batch, device).float().log_softmax(-1).flatten(0, 1).cpu()
            )
            targets = batch.targets.flatten()
            chosen = logits[targets != 0].gather(1, targets[targets != 0][:, None] - 1)
            totals += torch.tensor([-chosen.double().sum(), len(chosen)], dtype=torch.float64)
        accuracy = score_examples(task.module, form, prepared.valid).accuracy
        return {"loss": float(totals[0] / totals[1].clamp(min=1)), "accuracy": accuracy}

    return evaluate


def training_results(model: torch.nn.Module, outcome: TrainingResult) -> dict[str, Any]:
    """How training ended, for the model card."""
    return {
        "steps": outcome.step,
        "stopped_by": outcome.reason,
        "weights": outcome.weights,
        "target_tokens": outcome.target_tokens,
        "training_seconds": round(outcome.seconds, 1),
        "precision": outcome.precision,
        "parameters": count_parameters(model),
    }


def _measure(
    model: Labeller, prepared: PreparedLabels, watcher: Events, directory: Path | None
) -> dict[str, Any]:
    """Accuracy and the table of classes for the validation and test sets; what was answered is kept in the run's directory."""
    results: dict[str, Any] = {}
    named: tuple[tuple[Part, tuple[Labelled, ...]], ...] = (
        ("valid", prepared.valid),
        ("test", prepared.test),
    )
    for part, examples in named:
        if examples:
            watcher.note(
                say(f"measuring on the {part_name(part)} …", f"正在评测{part_name(part)}……")
            )
            answered = label_part(model, prepared.form, examples)
            results[part] = answered.as_dict()
            if directory is not None:
                answered.save(directory / FOLDER, part)
    return results
