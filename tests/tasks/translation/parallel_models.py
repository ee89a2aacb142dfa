"""Tiny parallel models with their losses: a vocabulary of a few words, double precision."""

from typing import Any

import torch

from headwise.data.packing import PackedBatch, build_rows
from headwise.data.shards import as_ragged
from headwise.models.choices import build_model
from headwise.models.parallel.translator import ParallelTranslator
from headwise.tasks.recipe import load_recipe
from headwise.tasks.translation.losses import loss_of
from headwise.tasks.translation.parallel_loss import ParallelLoss
from tests.tasks.tiny import OVERRIDES

KEPT = tuple(one for one in OVERRIDES if not one.startswith("decoding"))
PARALLEL = (*KEPT, "model.kind=parallel", "decoding={kind: one_pass}")
Pair = tuple[list[int], list[int]]


def make_loss(*overrides: str, vocabulary: int, seed: int = 3) -> ParallelLoss:
    """The loss of a recipe, as training computes it, without label smoothing."""
    recipe: Any = load_recipe(
        "pocket", [*PARALLEL, "training.objective.label_smoothing=0", *overrides]
    )
    module = build_model(
        recipe.model,
        source_size=vocabulary,
        target_size=vocabulary,
        generator=torch.Generator().manual_seed(seed),
    )
    assert isinstance(module, ParallelTranslator)
    loss = loss_of(recipe, module.double())
    assert isinstance(loss, ParallelLoss)
    return loss


def draw_pairs(lengths: list[tuple[int, int]], *, vocabulary: int, seed: int) -> list[Pair]:
    """Pairs of so many source and target words."""
    generator = torch.Generator().manual_seed(seed)

    def side(length: int) -> list[int]:
        return torch.randint(4, vocabulary, (length,), generator=generator).tolist()

    return [(side(source), side(target)) for source, target in lengths]


def pack(pairs: list[Pair], *, row: int) -> PackedBatch:
    source, target = ([pair[side] for pair in pairs] for side in (0, 1))
    return build_rows(as_ragged(source), as_ragged(target), source_row=row, target_row=row).batch()
