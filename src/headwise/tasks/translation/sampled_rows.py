"""Lays out the samples of a batch for the pass that scores them: one distinct sample per row.

    pairs of the batch   x¹, x², …           each with its reference
    drawn                y¹¹ y¹² y¹¹ | y²¹ y²¹ y²¹
    rows                 (x¹, y¹¹, twice)  (x¹, y¹², once)  (x², y²¹, three times)

A sample that was drawn several times is computed once and counts as often as it was drawn. A sample
that was cut at the longest length has no end of sentence, so it differs from the same words with
one.
Tested through the loss (sequence_loss.py), against samples one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.data.packing import PackedBatch
from headwise.tasks.translation.token_pair import TokenPair
from headwise.text.tokenizer import PAD

Written = tuple[int, ...]
"""The tokens of a translation with its end of sentence, if it has one."""


def read_pairs(batch: PackedBatch) -> list[TokenPair]:
    """The pairs of a batch, row by row."""
    sides = [
        _split(tokens.cpu().numpy(), segment.cpu().numpy())
        for tokens, segment in (
            (batch.source, batch.source_segment),
            (batch.target_output, batch.target_segment),
        )
    ]
    return [TokenPair(source[:-1], target[:-1]) for source, target in zip(*sides, strict=True)]


def _split(tokens: np.ndarray, segment: np.ndarray) -> list[list[int]]:
    real = segment > 0
    number = (np.arange(len(segment))[:, None] * (segment.max(initial=0) + 1) + segment)[real]
    borders = np.flatnonzero(np.diff(number)) + 1
    return [part.tolist() for part in np.split(tokens[real], borders) if len(part)]


@dataclass(frozen=True)
class SampledRows:
    """Distinct translations, each with the number of its pair."""

    tokens: Int[Tensor, "row time"]
    """Padded behind the end."""
    length: Int[Tensor, " row"]
    pair: Int[Tensor, " row"]
    slot: Int[Tensor, " row"]
    """Its number among the translations of its pair."""
    first_free: Int[Tensor, " row"]
    """The position of its first token that was not given."""
    width: int
    """The most translations of one pair."""

    @staticmethod
    def of(
        distinct: Sequence[Sequence[Written]], given: Sequence[int], device: torch.device
    ) -> "SampledRows":
        """`distinct` has the translations of each pair, `given` the length of its prefix."""
        rows = [
            (pair, slot, one) for pair, here in enumerate(distinct) for slot, one in enumerate(here)
        ]
        lengths = [len(one) for _, _, one in rows]
        table = np.full((len(rows), max(lengths)), PAD, dtype=np.int64)
        for number, (_, _, one) in enumerate(rows):
            table[number, : len(one)] = one
        columns = [lengths, *([row[i] for row in rows] for i in (0, 1))]
        length, pair, slot = (torch.tensor(column, device=device) for column in columns)
        prefix = torch.tensor([given[row[0]] for row in rows], device=device)
        tokens = torch.from_numpy(table).to(device)
        return SampledRows(tokens, length, pair, slot, prefix, max(map(len, distinct)))

    def table(
        self, values: Float[Tensor, " row"], *, num_pairs: int, fill: float
    ) -> Float[Tensor, "pair slot"]:
        """A number of each row at its place among those of its pair."""
        empty = values.new_full((num_pairs, self.width), fill)
        return empty.index_put((self.pair, self.slot), values)
