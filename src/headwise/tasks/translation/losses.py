"""Chooses the loss with which a translator is trained, and describes a training step to
`headwise plan`, which predicts its time and memory.

left to right   TranslationLoss (objective.py), SampledLoss (sampled_loss.py), SequenceLoss
                (sequence_loss.py)
parallel        ParallelLoss (parallel_loss.py), AlignmentLoss (alignment_loss.py), NgramLoss
                (ngram_loss.py), EditLoss (edit_loss.py)

All losses but the first are imported when they are needed: importing them loads torch's
compiler, which takes as long as torch itself, and every command with a translator imports this
file.
"""

import torch
from torch import nn

from headwise.data.packing import PackedBatch
from headwise.models.choices import build_model
from headwise.models.parallel.translator import ParallelTranslator
from headwise.models.translation_model import TranslationModel
from headwise.tasks.planned_step import PlannedStep, Vocabularies
from headwise.tasks.translation.fertile_batches import empty_fertilities, most_copies
from headwise.tasks.translation.objective import TranslationLoss
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.tokenizer_pair import TokenizerPair
from headwise.training.choices import NgramObjective
from headwise.training.sampling_choices import ScheduledSamplingObjective
from headwise.training.sequence.choices import SequenceObjective
from headwise.training.updates import Trainable


def loss_of(
    recipe: TranslationRecipe,
    module: TranslationModel,
    chunk_size: int | None = None,
    *,
    tokenizers: TokenizerPair | None = None,
) -> Trainable:
    """The model with its objective; `chunk_size` tokens have their logits made at a time.

    Without tokenizers, which a plan does not have, an objective with samples is the likelihood of
    as many rows.
    """
    if isinstance(recipe.training.objective, SequenceObjective) and tokenizers is not None:
        from headwise.tasks.translation.sequence_loss import SequenceLoss

        return SequenceLoss(module, recipe, tokenizers, chunk_size)
    if isinstance(module, ParallelTranslator):
        return _parallel_loss(recipe, module, chunk_size)
    if isinstance(recipe.training.objective, ScheduledSamplingObjective):
        from headwise.tasks.translation.sampled_loss import SampledLoss

        return SampledLoss(module, recipe, chunk_size)
    return TranslationLoss(module, recipe.training.objective.label_smoothing, chunk_size)


def _parallel_loss(
    recipe: TranslationRecipe, module: ParallelTranslator, chunk_size: int | None
) -> Trainable:
    if module.edits is not None:
        from headwise.tasks.translation.edit_loss import EditLoss

        return EditLoss(module, recipe, chunk_size)
    if isinstance(recipe.training.objective, NgramObjective):
        from headwise.tasks.translation.ngram_loss import NgramLoss

        return NgramLoss(module, recipe, chunk_size)
    if module.factor is not None:
        from headwise.tasks.translation.alignment_loss import AlignmentLoss

        return AlignmentLoss(module, recipe, chunk_size)
    from headwise.tasks.translation.parallel_loss import ParallelLoss

    return ParallelLoss(module, recipe, chunk_size)


def plan_step(recipe: TranslationRecipe, sizes: Vocabularies) -> PlannedStep:
    """The training step of a recipe as shapes; source rows are taken to be as long as target
    rows."""
    row, objective = recipe.data.row_tokens, recipe.training.objective
    # The pass over the samples costs most; drawing them is not planned.
    copies = 1 + objective.samples.count if isinstance(objective, SequenceObjective) else 1

    def build(rows: int) -> TranslationModel:
        return build_model(
            recipe.model,
            source_size=sizes.source,
            target_size=sizes.target,
            generator=None,
        )

    def trainable(module: nn.Module, chunk_size: int) -> Trainable:
        assert isinstance(module, TranslationModel)
        return loss_of(recipe, module, chunk_size)

    def batch(rows: int, length: int) -> PackedBatch:
        size = copies * rows, length
        source, target = (torch.ones(size, dtype=torch.int64) for _ in range(2))
        packed = PackedBatch(source, source, source, target, target, target, target)
        return packed if most_copies(recipe.model) is None else empty_fertilities(packed)

    return PlannedStep(
        recipe.training_as_run,
        build,
        trainable,
        batch,
        row=row,
        source_row=row,
        num_logits=sizes.target,
    )
