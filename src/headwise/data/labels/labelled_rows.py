"""Packs labelled sentences into rows: several sentences a row, and a target for some tokens.

    tokens     <s> a film worth seeing <s> dull 0 0        0 is padding
    segment     1  1  1    1     1      2   2   0 0        number of the sentence in its row
    position    0  1  2    3     4      0   1   0 0
    targets     2  0  0    0     0      1   0   0 0        0 is no target

For classification (N → 1) only the first token of a text has a target; for tagging (N → N) every
token has one. So one training loop serves both. The order of an epoch is a pure function of (seed,
epoch); the rows of all epochs are one stream, and a cursor of two integers is a position in it.
Tested against: every sentence once an epoch; resumed = uninterrupted; the shares of several
processes together = one process.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headwise.data.batching import ALL_ROWS, Share
from headwise.data.row_stream import batch_rows, endless_rows
from headwise.randomness import numpy_generator


@dataclass(frozen=True)
class LabelledTokens:
    """Sentence i is tokens[offsets[i] : offsets[i + 1]]; targets count from 1, 0 is none."""

    tokens: np.ndarray
    targets: np.ndarray
    offsets: np.ndarray
    affixes: np.ndarray | None = None
    """Features of the letters of each word (text/word_affixes.py), or its letters
    (text/word_characters.py)."""
    uncut: np.ndarray | None = None
    """The length of each text before it was cut to a row."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)


@dataclass(frozen=True)
class RowBatch:
    """Rows as tensors of static shape."""

    tokens: Tensor
    segment: Tensor
    position: Tensor
    targets: Tensor
    affixes: Tensor | None = None


Rows = Sequence[Sequence[int]]
"""The sentences of each row."""


def pack_rows(lengths: np.ndarray, order: np.ndarray, row_tokens: int) -> list[list[int]]:
    """Fill rows with sentences in the given order."""
    rows: list[list[int]] = []
    room = 0
    for number, length in zip(order.tolist(), lengths[order].tolist(), strict=True):
        assert length <= row_tokens, "sentences are cut before they are packed"
        if length > room or not rows:
            rows.append([])
            room = row_tokens
        rows[-1].append(number)
        room -= length
    return rows


def fill_rows(store: LabelledTokens, rows: Rows, row_tokens: int) -> RowBatch:
    """Rows of sentences as tensors; a row without sentences is padding."""
    shape = (len(rows), row_tokens)
    tokens, segment, position, targets = (np.zeros(shape, dtype=np.int64) for _ in range(4))
    affixes = (
        None
        if store.affixes is None
        else np.zeros((*shape, store.affixes.shape[1]), dtype=np.int64)
    )
    for row, sentences in enumerate(rows):
        start = 0
        for number, sentence in enumerate(sentences, start=1):
            here = slice(store.offsets[sentence], store.offsets[sentence + 1])
            there = slice(start, start := start + here.stop - here.start)
            tokens[row, there], targets[row, there] = store.tokens[here], store.targets[here]
            segment[row, there] = number
            position[row, there] = np.arange(here.stop - here.start)
            if affixes is not None and store.affixes is not None:
                affixes[row, there] = store.affixes[here]
    return RowBatch(
        torch.from_numpy(tokens),
        torch.from_numpy(segment),
        torch.from_numpy(position),
        torch.from_numpy(targets),
        None if affixes is None else torch.from_numpy(affixes),
    )


@dataclass(frozen=True)
class LabelledRows:
    """The training sentences as one endless stream of batches (training/prefetching.Batches)."""

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

    def _rows_of(self, epoch: int) -> list[list[int]]:
        order = numpy_generator(self.seed, "labelled", epoch).permutation(len(self.store))
        return pack_rows(self.store.lengths, order, self.row_tokens)

    def _fill(self, rows: Rows) -> RowBatch:
        return fill_rows(self.store, rows, self.row_tokens)


def rows_in_order(
    store: LabelledTokens, *, rows: int, row_tokens: int
) -> Iterator[tuple[RowBatch, Rows]]:
    """Every sentence once, in order, for evaluation; the last batch is completed with padding."""
    packed = pack_rows(store.lengths, np.arange(len(store)), row_tokens)
    for first in range(0, len(packed), rows):
        here = packed[first : first + rows]
        here += [[] for _ in range(rows - len(here))]
        yield fill_rows(store, here, row_tokens), here
