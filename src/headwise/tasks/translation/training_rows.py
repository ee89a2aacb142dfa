"""The pairs of a recipe as rows of its training: how long the rows are, and what a target holds.

A decoder that reads a fixed number of BEGIN tokens has as many positions for every target, so its
rows hold whole numbers of such targets. All other models take the pairs as they are.
"""

from headwise.data.batching import PairSource
from headwise.data.fixed_targets import FixedTargets, check_positions
from headwise.data.pairs.preparation import PreparedData
from headwise.models.choices import TranslatorSettings
from headwise.models.parallel.choices import ManyBeginLength, ParallelSettings
from headwise.tasks.translation.objective import RowShape
from headwise.tasks.translation.recipe import TranslationRecipe


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
