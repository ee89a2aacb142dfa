"""Cuts the stored sentences of one side into units, and numbers them: the parts of a sentence that
are segmented each by itself.

No segmentation has a piece across two characters that stand together in no piece of the vocabulary.
So a sentence may be cut there, whatever pieces are drawn later: it is no approximation. In a
language with spaces the units are nearly its words; in a run of Han characters, whose sentences
never repeat, they are 1.8 characters long on average (Tatoeba, 8,000 pieces) and do.

    tokens of the store   ▁T om ▁like s ▁tea .
    units                 ▁T om | ▁like s | ▁tea | .     no piece contains m▁, s▁ or a.

A unit is found by the 64-bit hash of its tokens (two of ten million share one with probability
3e-6). Units are numbered by how often they occur, so that the frequent ones lie together in memory.

Tested against: the same rule character by character; the units put together are the sentences.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headwise.data.shards import Ragged, Side, TokenStore, concatenated_ranges
from headwise.randomness import mix_bits
from headwise.text.piece_table import PieceTable

BLOCK_PAIRS = 1 << 16
_PLACE = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class UnitBorders:
    """Which neighbouring tokens may belong to one unit."""

    first: np.ndarray
    """The first character of each token; 0 if it is no text."""
    last: np.ndarray
    together: np.ndarray
    """Characters that stand together in a piece: left · size of the alphabet + right, sorted."""
    size: int

    @staticmethod
    def of(table: PieceTable) -> "UnitBorders":
        size, lengths = len(table.alphabet) + 1, table.lengths
        ends = np.cumsum(lengths)
        characters, is_text = np.append(table.characters, 0), lengths > 0
        first = np.where(is_text, characters[np.minimum(ends - lengths, ends[-1])], 0)
        last = np.where(is_text, characters[np.maximum(ends - 1, 0)], 0)
        inside = np.ones(int(ends[-1]), dtype=bool)
        inside[ends[is_text] - 1] = False
        left = np.flatnonzero(inside)
        together = np.unique(characters[left] * size + characters[left + 1])
        return UnitBorders(first, last, together, size)

    def begins(self, sentences: Ragged) -> np.ndarray:
        """Whether a unit begins at each token of the sentences (in the order of the text)."""
        tokens = sentences.tokens.astype(np.int64)
        begins = np.ones(len(tokens), dtype=bool)
        if len(self.together) == 0 or len(tokens) == 0:
            return begins
        wanted = self.last[tokens[:-1]] * self.size + self.first[tokens[1:]]
        place = np.minimum(np.searchsorted(self.together, wanted), len(self.together) - 1)
        begins[1:] = self.together[place] != wanted
        ends = np.cumsum(sentences.lengths)
        begins[(ends - sentences.lengths)[sentences.lengths > 0]] = True
        return begins


@dataclass(frozen=True)
class Units:
    """The distinct units of one side, the most frequent first."""

    tokens: Ragged
    """Of the best segmentation, in the order of the text."""
    counts: np.ndarray
    hashes: np.ndarray

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(self.hashes)

    @cached_property
    def _sorted(self) -> np.ndarray:
        return self.hashes[self._order]

    def find(self, hashes: np.ndarray) -> np.ndarray:
        """The number of each unit, all of which are known."""
        found: np.ndarray = self._order[np.searchsorted(self._sorted, hashes)]
        return found


@dataclass(frozen=True)
class CutBlock:
    """The units of some sentences."""

    units: Ragged
    """The tokens of each unit."""
    hashes: np.ndarray
    per_sentence: np.ndarray


def cut_store(
    store: TokenStore, side: Side, borders: UnitBorders, *, backwards: bool
) -> Iterator[CutBlock]:
    """The units of all sentences in their order; `backwards`: the store has the last token
    first."""
    for begin in range(0, len(store), BLOCK_PAIRS):
        sentences = store.gather_side(side, np.arange(begin, min(begin + BLOCK_PAIRS, len(store))))
        yield cut_sentences(turn_round(sentences) if backwards else sentences, borders)


def cut_sentences(sentences: Ragged, borders: UnitBorders) -> CutBlock:
    """Sentences in the order of the text."""
    starts = np.flatnonzero(borders.begins(sentences))
    lengths = np.diff(np.append(starts, len(sentences.tokens)))
    before = np.searchsorted(starts, np.cumsum(sentences.lengths))
    per_sentence = np.diff(np.concatenate([[0], before]))
    place = np.arange(len(sentences.tokens)) - np.repeat(starts, lengths)
    mixed = mix_bits(sentences.tokens.astype(np.uint64) + (place + 1).astype(np.uint64) * _PLACE)
    hashes = np.add.reduceat(mixed, starts) if len(starts) else mixed
    return CutBlock(Ragged(sentences.tokens, lengths), mix_bits(hashes), per_sentence)


def collect_units(blocks: Iterator[CutBlock]) -> Units:
    """The distinct units of all blocks."""
    hashes, number = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)  # sorted by hash
    counts = np.zeros(0, dtype=np.int64)
    tokens: list[np.ndarray] = []
    lengths: list[np.ndarray] = [np.zeros(0, dtype=np.int64)]
    for block in blocks:
        seen, first, often = np.unique(block.hashes, return_index=True, return_counts=True)
        place = np.searchsorted(hashes, seen)
        is_known = np.zeros(len(seen), dtype=bool)
        if len(hashes):
            is_known = hashes[np.minimum(place, len(hashes) - 1)] == seen
        counts[number[place[is_known]]] += often[is_known]
        new = ~is_known
        starts = np.cumsum(block.units.lengths) - block.units.lengths
        lengths.append(block.units.lengths[first[new]])
        tokens.append(block.units.tokens[concatenated_ranges(starts[first[new]], lengths[-1])])
        hashes = np.insert(hashes, place[new], seen[new])
        number = np.insert(number, place[new], np.arange(new.sum()) + len(counts))
        counts = np.concatenate([counts, often[new]])
    found = Ragged(np.concatenate([np.zeros(0, dtype=np.int64), *tokens]), np.concatenate(lengths))
    in_order = np.empty_like(hashes)
    in_order[number] = hashes
    order = np.lexsort((in_order, -counts))
    starts = np.cumsum(found.lengths) - found.lengths
    chosen = concatenated_ranges(starts[order], found.lengths[order])
    sorted_tokens = Ragged(found.tokens[chosen].astype(np.int64), found.lengths[order])
    return Units(sorted_tokens, counts[order], in_order[order])


def turn_round(sentences: Ragged) -> Ragged:
    """Each sentence with its last token first."""
    ends, lengths = np.cumsum(sentences.lengths), sentences.lengths
    first = ends - lengths
    turned = np.repeat(first + ends - 1, lengths) - np.arange(len(sentences.tokens))
    return Ragged(sentences.tokens[turned], lengths)
