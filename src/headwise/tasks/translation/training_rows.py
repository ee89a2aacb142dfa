"""The pairs of a recipe as rows of its training: how long the rows are, and what a target holds.

A decoder that reads a fixed number of BEGIN tokens has as many positions for every target, so its
rows hold whole numbers of such targets. A decoder that copies source tokens by their fertility
learns from batches that hold the fertilities (fertile_batches.py). All other models take the pairs
as they are.
"""

from dataclasses import replace
from pathlib import Path

from headwise.data.batching import ALL_ROWS, PairSource, Share
from headwise.data.fixed_targets import FixedTargets, check_positions
from headwise.data.pairs.alignment.learned import open_alignment, prepare_alignment
from headwise.data.pairs.preparation import PreparedData
from headwise.language import say
from headwise.models.choices import TranslatorSettings
from headwise.models.parallel.choices import ManyBeginLength, ParallelSettings
from headwise.tasks.events import Events
from headwise.tasks.translation.fertile_batches import (
    FertilePairs,
    FertileValidation,
    aligner_of,
    check_copies,
    most_copies,
)
from headwise.tasks.translation.objective import PackedPairs, RowShape
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.training.prefetching import Batches
from headwise.training.updates import Trainable


def row_shape(recipe: TranslationRecipe, prepared: PreparedData) -> RowShape:
    """Rows that hold `training.batch_tokens` target tokens, at least one."""
    target = prepared.target_row
    positions = fixed_positions(recipe.model)
    if positions is not None:
        target = max(1, target // positions) * positions
    rows = max(1, round(recipe.training.batch_tokens / target))
    return RowShape(rows, prepared.source_row, target)


def fixed_positions(model: TranslatorSettings) -> int | None:
    """The number of positions of every target; None if targets have their own lengths."""
    if isinstance(model, ParallelSettings) and isinstance(model.length, ManyBeginLength):
        return model.length.positions
    return None


def pairs_for(recipe: TranslationRecipe, store: PairSource) -> PairSource:
    """The pairs of a store as the model learns from them."""
    positions = fixed_positions(recipe.model)
    return store if positions is None else FixedTargets(store, positions)


def check_targets(recipe: TranslationRecipe, prepared: PreparedData) -> None:
    """Refuse a training target that the decoder has no positions for."""
    positions = fixed_positions(recipe.model)
    if positions is not None:
        stores = [prepared.train, *([prepared.valid] if prepared.valid is not None else [])]
        check_positions(1 + max(store.max_length["target"] for store in stores), positions)
    most = most_copies(recipe.model)
    if most is not None:
        check_copies(prepared.train, most, part="train")
        if prepared.valid is not None:
            check_copies(prepared.valid, most, part="valid")


def batches_for(
    recipe: TranslationRecipe, prepared: PreparedData, shape: RowShape, share: Share = ALL_ROWS
) -> Batches:
    """The batches of a training, or of one process of it."""
    pairs = pairs_for(recipe, prepared.train)
    batches = PackedPairs(pairs, shape, recipe.training.seed, prepared.fingerprint, share)
    aligner = aligner_of(recipe.model, prepared)
    return batches if aligner is None else FertilePairs(batches, aligner)


def validated(recipe: TranslationRecipe, prepared: PreparedData, loss: Trainable) -> Trainable:
    """The loss as a validation computes it, whose batches hold pairs only."""
    aligner = aligner_of(recipe.model, prepared)
    return loss if aligner is None else FertileValidation(loss, aligner)


def add_alignment(
    recipe: TranslationRecipe, prepared: PreparedData, directory: Path, watcher: Events
) -> PreparedData:
    """With the aligner of the training pairs, if the model learns from its links."""
    if most_copies(recipe.model) is None:
        return prepared
    label = say("learning the word alignment", "正在学习词对齐")
    alignment = prepare_alignment(
        directory,
        prepared.train,
        num_targets=prepared.tokenizers.target.size,
        progress=lambda done, total: watcher.count(label, done, total),
    )
    return replace(prepared, alignment=alignment)


def reopen_alignment(
    recipe: TranslationRecipe, prepared: PreparedData, directory: Path
) -> PreparedData:
    """The same for another process, after the first one has prepared it."""
    if most_copies(recipe.model) is None:
        return prepared
    return replace(prepared, alignment=open_alignment(directory))
