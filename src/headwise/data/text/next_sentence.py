"""Pairs of lines for next sentence prediction (BERT): does the second line follow the first?

    tokens    <s> A A A <s> B B        the second line begins at the inner <s>
    targets    2  0 0 0  0  0 0        2: the next line of the text; 1: any other line

Devlin et al. 2019. The target is at the first token, like the label of a text
(labels/labelled_rows.py). An epoch takes lines two by two, starting in turn at the first or second
line of the text; for half of the pairs the second line is drawn from all other lines. Pairs are a
pure function of (seed, epoch), so a position in their stream is a cursor of two integers. Tested
against: the share and truth of each kind; no line follows itself; equal streams from every cursor.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headwise.data.batching import ALL_ROWS, Share
from headwise.data.labels.labelled_rows import (
    LabelledTokens,
    RowBatch,
    fill_rows,
    pack_rows,
)
from headwise.data.row_stream import batch_rows, endless_rows
from headwise.randomness import numpy_generator

OTHER, NEXT = 1, 2
TRUE_SHARE = 0.5


class LinePair(NamedTuple):
    """Numbers of two lines, and whether the second follows the first."""

    first: int
    second: int
    kind: int


def draw_pairs(num_lines: int, *, seed: int, epoch: int) -> list[LinePair]:
    """The pairs of an epoch in the order of their first lines; needs at least three lines."""
    generator = numpy_generator(seed, "pairs", epoch)
    first = np.arange(epoch % 2, num_lines - 1, 2)
    is_next = generator.random(len(first)) < TRUE_SHARE
    # Numbers from 0 to n - 3, moved past the pair itself: every other line is equally likely.
    other = generator.integers(0, num_lines - 2, size=len(first))
    other += 2 * (other >= first)
    second = np.where(is_next, first + 1, other)
    return [
        LinePair(*one)
        for one in zip(first.tolist(), second.tolist(), (OTHER + is_next).tolist(), strict=True)
    ]


def join_pairs(lines: LabelledTokens, pairs: Sequence[LinePair]) -> LabelledTokens:
    """Each pair as one sentence with its label; every line already begins with <s>."""
    cuts = lines.offsets
    parts = [
        lines.tokens[cuts[line] : cuts[line + 1]]
        for pair in pairs
        for line in (pair.first, pair.second)
    ]
    lengths = np.fromiter((len(part) for part in parts), np.int64, len(parts)).reshape(-1, 2).sum(1)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = np.concatenate(parts) if parts else lines.tokens[:0]
    targets = np.zeros_like(tokens)
    targets[offsets[:-1]] = [pair.kind for pair in pairs]
    return LabelledTokens(tokens, targets, offsets)


@dataclass(frozen=True)
class PairRows:
    """Pairs of lines as one endless stream of batches (training/prefetching.Batches)."""

    store: LabelledTokens
    rows: int
    row_tokens: int
    seed: int
    fingerprint: str
    share: Share = ALL_ROWS

    def stream(
        self, cursor: Mapping[str, int] | None
    ) -> Iterator[tuple[RowBatch, Mapping[str, int]]]:
        self.share.check(self.rows, self.row_tokens)
        return batch_rows(endless_rows(cursor, self._rows_of), self.rows, self.share, self._fill)

    def _rows_of(self, epoch: int) -> list[list[LinePair]]:
        pairs = draw_pairs(len(self.store), seed=self.seed, epoch=epoch)
        sizes = self.store.lengths
        lengths = np.fromiter(
            (sizes[one.first] + sizes[one.second] for one in pairs), np.int64, len(pairs)
        )
        order = numpy_generator(self.seed, "labelled", epoch).permutation(len(pairs))
        return [
            [pairs[number] for number in row] for row in pack_rows(lengths, order, self.row_tokens)
        ]

    def _fill(self, rows: Sequence[Sequence[LinePair]]) -> RowBatch:
        joined = join_pairs(self.store, [pair for row in rows for pair in row])
        numbers = iter(range(len(joined)))
        return fill_rows(joined, [[next(numbers) for _ in row] for row in rows], self.row_tokens)
