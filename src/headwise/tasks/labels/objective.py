"""Computes the loss of a classifier or tagger, and what a validation measures.

    loss(batch) = smoothed cross-entropy of the labels, summed over the tokens that have one

A label for a text is a tag for its first token, so one loss serves both
(data/labels/labelled_rows.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from headwise.data.labels.labelled_rows import RowBatch, rows_in_order
from headwise.models.labeller import LabelModel
from headwise.models.sentence_encoder import ElmoSettings
from headwise.tasks.labels.bundle import new_labeller
from headwise.tasks.labels.data import PreparedLabels, count_features
from headwise.tasks.labels.labeller import logits_of, score_examples
from headwise.tasks.labels.recipe import LabelRecipe
from headwise.tasks.planned_step import PlannedStep
from headwise.text.word_characters import NUM_LETTERS
from headwise.training.losses import LossSums
from headwise.training.session import Evaluate


@dataclass(frozen=True)
class LabelLoss:
    """A model and its loss."""

    module: LabelModel
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


def plan_step(recipe: LabelRecipe, *, size: int, num_classes: int) -> PlannedStep:
    """The training step of a recipe as shapes, for so many tokens and classes."""
    row, model = recipe.data.row_tokens, recipe.model
    num_features = NUM_LETTERS if isinstance(model, ElmoSettings) else 0
    if model.letters:
        num_features = count_features(model.letters, model.spelling)

    def build(rows: int) -> LabelModel:
        return new_labeller(recipe, size=size, num_classes=num_classes, generator=None)

    def trainable(module: nn.Module, chunk_size: int) -> LabelLoss:
        assert isinstance(module, LabelModel)
        return LabelLoss(module, recipe.training.objective.label_smoothing)

    def batch(rows: int, length: int) -> RowBatch:
        ones = torch.ones(rows, length, dtype=torch.int64)
        letters = (
            torch.ones(rows, length, num_features, dtype=torch.int64) if num_features else None
        )
        return RowBatch(ones, ones, ones, ones, letters)

    return PlannedStep(
        recipe.training_as_run, build, trainable, batch, row=row, num_logits=num_classes
    )


def validation(task: LabelLoss, prepared: PreparedLabels) -> Evaluate | None:
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
