"""The pairs of a store, cut into other pieces each time they are seen.

A sentence is a row of unit numbers (units.py), and each unit has a list of segmentations
(alternatives.py). An occurrence of a unit takes one of the list, by a hash of

    (key, sentence, place in the sentence)          key: seed, epoch and chunk of the stream

The tokens of a sentence in an epoch are thus a function of integers, and cost a few array lookups:
a run that is resumed, or shared by several processes, sees the same ones as an uninterrupted run.
Without a key (an evaluation) every unit has its best segmentation.

A sentence that became longer than `room` has its best segmentation in this epoch: every row holds
it, and it is still learnt.

Tested against: the sentences' characters; the segmentation unit by unit; equal keys.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headwise.data.pairs.segmentation.units import turn_round
from headwise.data.shards import CorpusRange, Ragged, Side, TokenStore, concatenated_ranges
from headwise.randomness import mix_bits, seed_from

_SENTENCE, _PLACE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
_HALF = np.uint64(32)


@dataclass(frozen=True)
class SegmentedSide:
    """The units of all sentences of one side, and the segmentations of each unit."""

    units: np.ndarray
    """The number of each unit, sentence after sentence."""
    offsets: np.ndarray
    """Where the units of a sentence begin, and one more."""
    first: np.ndarray
    """Where the segmentations of a unit begin, and one more; the first is the best."""
    starts: np.ndarray
    """Where the tokens of each segmentation begin."""
    lengths: np.ndarray
    tokens: np.ndarray
    backwards: bool
    """The last token of a sentence comes first."""

    def gather(self, pairs: np.ndarray, key: Sequence[int | str], room: int) -> Ragged:
        """The tokens of some sentences under a key."""
        count, chosen = self.choose(pairs, key)
        long = np.repeat(_sum_up(self.lengths[chosen], count) > room, count)
        if long.any():
            units = self._units_of(pairs, count)
            chosen = np.where(long, self.first[units], chosen)
        lengths = self.lengths[chosen].astype(np.int64)
        places = concatenated_ranges(self.starts[chosen], lengths)
        sentences = Ragged(self.tokens[places], _sum_up(lengths, count))
        return turn_round(sentences) if self.backwards else sentences

    def choose(self, pairs: np.ndarray, key: Sequence[int | str]) -> tuple[np.ndarray, np.ndarray]:
        """The number of units of each sentence, and the segmentation drawn for each of them."""
        count = np.asarray(self.offsets[pairs + 1] - self.offsets[pairs])
        units = self._units_of(pairs, count)
        first = self.first[units]
        others = (self.first[units + 1] - first - 1).astype(np.uint64)
        sentence = mix_bits(np.uint64(seed_from(*key)) + pairs.astype(np.uint64) * _SENTENCE)
        place = concatenated_ranges(np.ones(len(pairs), dtype=np.int64), count).astype(np.uint64)
        drawn = mix_bits(np.repeat(sentence, count) + place * _PLACE) >> _HALF
        number = 1 + (drawn * others >> _HALF).astype(np.int64)
        return count, first + np.where(others > 0, number, 0)

    def long_sentences(self, pairs: np.ndarray, key: Sequence[int | str], room: int) -> int:
        """How many have their best segmentation because they became too long."""
        count, chosen = self.choose(pairs, key)
        return int((_sum_up(self.lengths[chosen], count) > room).sum())

    def _units_of(self, pairs: np.ndarray, count: np.ndarray) -> np.ndarray:
        found: np.ndarray = self.units[
            concatenated_ranges(np.asarray(self.offsets[pairs]), count)
        ].astype(np.int64)
        return found


def _sum_up(lengths: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The tokens of each sentence, from those of its units."""
    total = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    ends = np.cumsum(count)
    sums: np.ndarray = total[ends] - total[ends - count]
    return sums


@dataclass(frozen=True)
class SegmentedPairs:
    """A store whose sentences are cut anew under every key."""

    store: TokenStore
    sides: Mapping[Side, SegmentedSide]
    """Of the sides that are cut anew."""
    room: Mapping[Side, int]
    """The most tokens of a sentence, without its end."""

    @property
    def corpora(self) -> Sequence[CorpusRange]:
        return self.store.corpora

    def __len__(self) -> int:
        return len(self.store)

    def gather(self, pairs: np.ndarray, key: Sequence[int | str] = ()) -> tuple[Ragged, Ragged]:
        return self._side("source", pairs, key), self._side("target", pairs, key)

    def _side(self, side: Side, pairs: np.ndarray, key: Sequence[int | str]) -> Ragged:
        if not key or side not in self.sides:
            return self.store.gather_side(side, pairs)
        return self.sides[side].gather(pairs, (*key, side), self.room[side])
