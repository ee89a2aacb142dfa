"""Laws of company: a sentence comes out as it does alone, whatever shares its row or fills it up. Each is a function of a row of the table."""

import torch

from headwise.attention.masks import Mask, causal, padding, segments
from tests.laws.kernels import Row
from tests.laws.probes import assert_same, stand_at
from tests.laws.scenes import BATCH, scene_for


def packed_is_one_by_one(row: Row, dtype: torch.dtype = torch.float64) -> None:
    """Sentences that share a row under segment numbers give what each gives by itself, causal or not."""
    if "segments" in row.refuses:
        return
    lengths, kernel = (2, 3, 5), row.build(0.0)
    scene = scene_for(row, "packed", num_keys=sum(lengths) + 1, square=True, dtype=dtype)
    numbers = torch.tensor([number for number, length in enumerate(lengths, 1) for _ in range(length)] + [0])
    own = segments(numbers.expand(BATCH, -1), numbers.expand(BATCH, -1))
    for extra in (Mask(), causal()) if "causal" not in row.refuses else (Mask(),):
        whole = kernel(scene.q, scene.k, scene.v, extra & own)
        start = 0
        for length in lengths:
            part = slice(start, start + length)
            alone = kernel(scene.q[:, :, part], scene.k[:, :, part], scene.v[:, :, part], extra)
            assert_same(whole[:, :, part], alone)
            start += length
        assert whole[:, :, start:].eq(0).all()


def padded_is_one_by_one(row: Row, dtype: torch.dtype = torch.float64) -> None:
    """A sentence with filling before and behind it gives what it gives by itself, causal or not: no answer depends on its company in a batch."""
    if "padding" in row.refuses:
        return
    length, kernel = 5, row.build(0.0)
    for before in (0, 3):
        whole = scene_for(row, "padded", num_keys=length + 2 * 3, square=True, dtype=dtype)
        part = slice(before, before + length)
        real = torch.zeros(BATCH, whole.num_keys, dtype=torch.bool)
        real[:, part] = True
        for extra in (Mask(), causal()) if "causal" not in row.refuses else (Mask(),):
            standing = stand_at(kernel, -before, whole.num_queries)
            given = standing(whole.q, whole.k, whole.v, extra & padding(real))[:, :, part]
            alone = kernel(whole.q[:, :, part], whole.k[:, :, part], whole.v[:, :, part], extra)
            assert_same(given, alone, f"{before} before it", more_terms=row.more_terms)
