"""Packs source sentences into rows for the encoder, so that little of a batch is padding.

A row is as long as the longest source (rounded up). It takes the longest source that is left, then
the shortest ones as long as they fit. Segment numbers and restarting positions keep sentences
apart, as in training. Example: 512 sources have 18 words on average and 82 at most. Padding them to
the longest makes 49,152 positions, of which 20 % are words; packing makes 10,752, of which 90 %
are.

Tested: every token once, at its position; the encoder's output equals that of the padded batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from headwise.text.tokenizer import EOS

STEP = 16
"""Lengths of rows are multiples of this."""


@dataclass(frozen=True)
class PackedSources:
    tokens: np.ndarray
    """Of all sources one after the other, each with its end of sentence."""
    lengths: np.ndarray
    row: np.ndarray
    begin: np.ndarray
    """The row of each source and the position where it begins."""
    segment: np.ndarray
    """Its number in the row, from 1 on."""
    num_rows: int
    row_length: int

    def lay_out(
        self, num_rows: int, *, num_sentences: int, stride: int, nowhere: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Tokens, segments, positions, destinations, [4, row, position], and the sources' lengths.

        The length is 1 where there is no source. The destination of token t of source s is
        s · stride + t; that of padding is `nowhere`.
        """
        tables = np.zeros((4, num_rows * self.row_length), dtype=np.int64)
        tables[3] = nowhere
        sentence = np.repeat(np.arange(len(self.lengths)), self.lengths)
        position = np.arange(len(self.tokens)) - np.repeat(
            np.cumsum(self.lengths) - self.lengths, self.lengths
        )
        place = (self.row * self.row_length + self.begin)[sentence] + position
        tables[:, place] = (
            self.tokens,
            self.segment[sentence],
            position,
            sentence * stride + position,
        )
        lengths = np.ones(num_sentences, dtype=np.int64)
        lengths[: len(self.lengths)] = self.lengths
        return tables.reshape(4, num_rows, self.row_length), lengths


def pack_sources(sources: Sequence[Sequence[int]], *, limit: int) -> PackedSources:
    """Pack sources, which come without their end; rows have at most `limit` tokens."""
    sizes = [len(source) + 1 for source in sources]
    row_length = min(limit, -(-max(sizes) // STEP) * STEP)
    order = sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True)
    row, begin, segment = [0] * len(sizes), [0] * len(sizes), [1] * len(sizes)
    first, last, num_rows = 0, len(order) - 1, 0
    while first <= last:
        used, number = sizes[order[first]], 1
        row[order[first]] = num_rows
        first += 1
        while first <= last and used + sizes[order[last]] <= row_length:
            number += 1
            row[order[last]], begin[order[last]], segment[order[last]] = num_rows, used, number
            used += sizes[order[last]]
            last -= 1
        num_rows += 1
    lengths = np.array(sizes)
    words = np.fromiter(
        chain.from_iterable(sources), dtype=np.int64, count=int(lengths.sum()) - len(lengths)
    )
    tokens = np.insert(words, np.cumsum(lengths - 1), EOS)
    return PackedSources(
        tokens, lengths, np.array(row), np.array(begin), np.array(segment), num_rows, row_length
    )
