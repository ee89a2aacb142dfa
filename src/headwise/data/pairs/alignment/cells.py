"""Lays out all pairs of a target token and a source token of the same sentence pair as flat arrays,
over which a word aligner computes.

A sentence pair of n source and m target tokens has m × n cells, target token by target token:

    cells of pair 1      y₁x₁ y₁x₂ y₁x₃ | y₂x₁ y₂x₂ y₂x₃        cells of pair 2 …

So the cells of a target token are neighbours, and a sum or a maximum over its source tokens is one
call of `reduceat`. A prior that depends only on (n, m) and the cell is stored once for each shape
that occurs: `shape_cell` says where. An aligner goes through the cells of a corpus block by block.

Tested against: two nested loops.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headwise.data.shards import Ragged, concatenated_ranges
from headwise.errors import DataError

BLOCK_CELLS = 1 << 21
"""Cells that are computed at once: temporary arrays of 16 MB."""


@dataclass(frozen=True)
class Shapes:
    """The distinct shapes (source tokens, target tokens) of a corpus, and their cells in a row."""

    num_source: np.ndarray
    num_target: np.ndarray

    @staticmethod
    def of(source_lengths: np.ndarray, target_lengths: np.ndarray) -> "Shapes":
        widest = int(target_lengths.max(initial=0)) + 1
        distinct = np.unique(source_lengths * widest + target_lengths)
        return Shapes(distinct // widest, distinct % widest)

    @property
    def first_cell(self) -> np.ndarray:
        """Where the cells of each shape begin."""
        sizes = self.num_source * self.num_target
        return np.cumsum(sizes) - sizes

    def find(self, source_lengths: np.ndarray, target_lengths: np.ndarray) -> np.ndarray:
        """The number of the shape of each pair."""
        widest = int(max(self.num_target.max(initial=0), target_lengths.max(initial=0))) + 1
        known = self.num_source * widest + self.num_target
        return np.searchsorted(known, source_lengths * widest + target_lengths)


@dataclass(frozen=True)
class Cells:
    """The cells of some sentence pairs."""

    source: np.ndarray
    """The source token of each cell."""
    target: np.ndarray
    """The target token of each cell."""
    place: np.ndarray
    """The index of the source token in its sentence."""
    target_tokens: np.ndarray
    """All target tokens, one after the other."""
    num_cells: np.ndarray
    """How many cells each target token has: the length of its source."""
    shape_cell: np.ndarray
    """Where each cell is among the cells of the shapes."""

    @property
    def first_cell(self) -> np.ndarray:
        """Where the cells of each target token begin."""
        return np.cumsum(self.num_cells) - self.num_cells


def lay_out_cells(source: Ragged, target: Ragged, shapes: Shapes) -> Cells:
    """The cells of the pairs, in their order; neither side of a pair is empty."""
    if min(source.lengths.min(initial=1), target.lengths.min(initial=1)) < 1:
        raise DataError(
            "a sentence pair has an empty side, but an alignment needs a token on both; prepare "
            "the data again, which drops such pairs",
            "有句对的一侧为空，而对齐要求两侧都有词元；请重新准备数据，这样的句对会被去掉",
        )
    num_cells = np.repeat(source.lengths, target.lengths)
    begin = np.repeat(np.cumsum(source.lengths) - source.lengths, target.lengths)
    origin = concatenated_ranges(begin, num_cells)
    shape = shapes.find(source.lengths, target.lengths)
    return Cells(
        source=np.asarray(source.tokens)[origin],
        target=np.repeat(target.tokens, num_cells),
        place=origin - np.repeat(begin, num_cells),
        target_tokens=np.asarray(target.tokens),
        num_cells=num_cells,
        shape_cell=concatenated_ranges(shapes.first_cell[shape], source.lengths * target.lengths),
    )


def cut_pairs(
    source_lengths: np.ndarray, target_lengths: np.ndarray, *, cells: int
) -> Iterator[np.ndarray]:
    """The numbers of the pairs, in blocks of about so many cells, at least one pair each."""
    block = np.cumsum(source_lengths * target_lengths) // cells
    yield from np.split(np.arange(len(block)), np.flatnonzero(np.diff(block)) + 1)
