"""Lays out the sentence pairs of a recipe as rows of its training: how long the rows are, and what
a target holds.

A decoder that reads a fixed number of BEGIN tokens has as many positions for every target, so its
rows hold whole numbers of such targets. A decoder that copies source tokens by their fertility
has a loss that finds them first (fertile_batches.py). All other models take the pairs
as they are. Where sentences are cut into other pieces in each epoch (`training.segmentation`), the
rows have room for the proportion of the longer sentences.
"""

import logging
from dataclasses import replace
from pathlib import Path

from headwise.data.batching import ALL_ROWS, PairSource, Share, plan_rows
from headwise.data.fixed_targets import FixedTargets, check_positions
from headwise.data.pairs.alignment.learned import open_alignment, prepare_alignment
from headwise.data.pairs.preparation import PreparedData
from headwise.data.pairs.segmentation.prepared import open_segmentation, prepare_segmentation
from headwise.data.shards import SIDES, TokenStore
from headwise.errors import DataError
from headwise.language import say
from headwise.models.choices import TranslatorSettings
from headwise.models.parallel.choices import (
    GraphStructure,
    ManyBeginLength,
    ParallelSettings,
    UpsampledLength,
)
from headwise.tasks.events import Events
from headwise.tasks.translation.fertile_batches import (
    FertileLoss,
    aligner_of,
    check_copies,
    most_copies,
)
from headwise.tasks.translation.objective import PackedPairs, RowShape
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.training.prefetching import Batches
from headwise.training.updates import Trainable

logger = logging.getLogger(__name__)


def row_shape(recipe: TranslationRecipe, prepared: PreparedData) -> RowShape:
    """Rows that hold `training.batch_tokens` target tokens, at least one."""
    target = prepared.target_row
    positions = fixed_positions(recipe.model)
    if positions is not None:
        target = max(1, target // positions) * positions
    rows = max(1, round(recipe.training.batch_tokens / target))
    return RowShape(rows, source_row(prepared), target)


def source_row(prepared: PreparedData) -> int:
    """Longer than for the best segmentation if the sources grow more than the targets; not shorter,
    because the longest source must fit in any case."""
    cut = prepared.segmentation
    if cut is None:
        return prepared.source_row
    tokens = {
        side: cut.growth[side] * (prepared.train.total_tokens[side] + len(prepared.train))
        for side in SIDES
    }
    row, _ = plan_rows(round(tokens["source"]), round(tokens["target"]), prepared.target_row)
    return max(row, prepared.source_row)


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
    """Refuse training targets that the decoder has no positions for; a model that makes positions
    from the source ignores such pairs, and says how many there are."""
    positions = fixed_positions(recipe.model)
    if positions is not None:
        stores = [prepared.train, *([prepared.valid] if prepared.valid is not None else [])]
        check_positions(1 + max(store.max_length["target"] for store in stores), positions)
    if isinstance(recipe.model, ParallelSettings):
        length = recipe.model.length
        if isinstance(length, UpsampledLength):
            needed = 2 if isinstance(recipe.model.structure, GraphStructure) else 0
            warn_of_long_targets(prepared.train, factor=length.factor, needed=needed)
    most = most_copies(recipe.model)
    if most is not None:
        check_copies(prepared.train, most, part="train")
        if prepared.valid is not None:
            check_copies(prepared.valid, most, part="valid")


def warn_of_long_targets(store: TokenStore, *, factor: int, needed: int) -> None:
    """`needed`: positions that a target takes beside its tokens."""
    room = factor * (store.source_lengths + 1) - needed
    count = int((store.target_lengths > room).sum())
    if count == 0:
        return
    total = len(store)
    en = (
        f"{count:,} of {total:,} training pairs have more target tokens than the decoder has "
        f"positions ({factor} for each source token)"
    )
    zh = (
        f"{total:,} 个训练句对中有 {count:,} 个的目标词元多于解码器的位置（每个源词元 {factor} 个）"
    )
    if count == total:
        raise DataError(
            f"{en}: nothing can be learnt; set model.length.factor={factor + 1} or more",
            f"{zh}：无从学习；请设 model.length.factor={factor + 1} 或更大",
        )
    logger.warning(
        "%s",
        say(
            f"{en}: they are not learnt from; a larger model.length.factor keeps them",
            f"{zh}：这些句对不参与学习；增大 model.length.factor 可保留它们",
        ),
    )


def batches_for(
    recipe: TranslationRecipe, prepared: PreparedData, shape: RowShape, share: Share = ALL_ROWS
) -> Batches:
    """The batches of a training, or of one process of it."""
    longest = fixed_positions(recipe.model) or shape.target
    store: PairSource = prepared.train
    if prepared.segmentation is not None:
        store = prepared.segmentation.of(prepared.train, source=shape.source, target=longest)
    pairs = pairs_for(recipe, store)
    return PackedPairs(pairs, shape, recipe.training.seed, prepared.fingerprint, share)


def on_pairs(recipe: TranslationRecipe, prepared: PreparedData, loss: Trainable) -> Trainable:
    """The loss on batches that hold pairs only."""
    aligner = aligner_of(recipe.model, prepared)
    return loss if aligner is None else FertileLoss(loss, aligner)


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


def add_segmentation(
    recipe: TranslationRecipe, prepared: PreparedData, directory: Path, watcher: Events
) -> PreparedData:
    """With what the training pairs can be cut into, if the recipe cuts them anew."""
    settings = recipe.training.segmentation
    if settings is None:
        return prepared
    label = say("drawing other segmentations", "正在抽取其他切分")
    passes, done = 2 * (2 if settings.sides == "both" else 1), 0

    def tell(pairs: int) -> None:
        nonlocal done
        done += pairs
        watcher.count(label, done // passes, len(prepared.train))

    segmentation = prepare_segmentation(
        directory,
        prepared.train,
        prepared.tokenizers,
        settings,
        rows=(prepared.source_row, fixed_positions(recipe.model) or prepared.target_row),
        progress=tell,
    )
    watcher.note(segmentation.describe())
    return replace(prepared, segmentation=segmentation)


def reopen_additions(
    recipe: TranslationRecipe, prepared: PreparedData, directory: Path
) -> PreparedData:
    """The same for another process, after the first one has prepared them."""
    if recipe.training.segmentation is not None:
        prepared = replace(prepared, segmentation=open_segmentation(directory))
    if most_copies(recipe.model) is None:
        return prepared
    return replace(prepared, alignment=open_alignment(directory))
