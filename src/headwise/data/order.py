"""The order of training pairs: a pure function of (seed, epoch, position), computed on demand.

An epoch is a pseudo-random permutation of 0 … n-1 that is never stored. A Feistel network over the
smallest square of a power of two that holds n is a bijection; applying it again while the result is
not below n gives a permutation of 0 … n-1 ("cycle walking", Black and Rogaway 2002). Chunk c of
epoch e therefore costs the same for ten pairs and for 100 million, and every process and every
resumed run computes the same order.

    (left, right) -> (right, left xor mix(right, key_r))      for each round r

A corpus of weight w is seen w times in an epoch: w = 2 twice; w = 0.5 means half of the corpus,
another half in the next epoch.

Tested against: it is a permutation for every n; every pair exactly once (w = 1); the position of a
pair is uniform.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwise.data.shards import CorpusRange
from headwise.randomness import mix_bits, seed_from

_NUM_ROUNDS = 6
CHUNK_PAIRS = 16_384
"""Pairs that are packed together; the chunks of an epoch differ in size by at most one pair."""


def permute(places: np.ndarray, size: int, *, key: Sequence[int | str]) -> np.ndarray:
    """The image of each position in 0 … size-1 under the permutation that the key names."""
    half_bits = max(1, ((max(size, 2) - 1).bit_length() + 1) // 2)
    keys = [np.uint64(seed_from(*key, round_number)) for round_number in range(_NUM_ROUNDS)]
    result = _feistel(places.astype(np.uint64), half_bits, keys)
    while len(outside := np.flatnonzero(result >= size)):
        result[outside] = _feistel(result[outside], half_bits, keys)
    return result.astype(np.int64)


def _feistel(values: np.ndarray, half_bits: int, keys: Sequence[np.uint64]) -> np.ndarray:
    mask = np.uint64((1 << half_bits) - 1)
    shift = np.uint64(half_bits)
    left, right = values >> shift, values & mask
    for key in keys:
        left, right = right, left ^ (mix_bits(right + key) & mask)
    return (left << shift) | right


@dataclass(frozen=True)
class EpochOrder:
    """The order of all epochs of some corpora under one seed."""

    corpora: Sequence[CorpusRange]
    seed: int

    @property
    def seen(self) -> list[int]:
        """How many pairs of each corpus are seen in an epoch; at least one."""
        return [max(1, round(corpus.pairs * corpus.weight)) for corpus in self.corpora]

    @property
    def size(self) -> int:
        return sum(self.seen)

    @property
    def num_chunks(self) -> int:
        return max(1, round(self.size / CHUNK_PAIRS))

    def chunk(self, epoch: int, number: int) -> np.ndarray:
        """The pairs (their indices in the store) of one chunk of one epoch."""
        size, chunks = self.size, self.num_chunks
        places = np.arange(size * number // chunks, size * (number + 1) // chunks)
        drawn = permute(places, size, key=(self.seed, "epoch", epoch))
        result = np.empty_like(drawn)
        first_drawn, first_pair = 0, 0
        for index, (corpus, seen) in enumerate(zip(self.corpora, self.seen, strict=True)):
            here = (drawn >= first_drawn) & (drawn < first_drawn + seen)
            inside = drawn[here] - first_drawn
            if seen % corpus.pairs:  # epochs take turns over a fixed shuffle of the corpus
                inside = (inside + epoch * seen) % corpus.pairs
                inside = permute(inside, corpus.pairs, key=(self.seed, "corpus", index))
            result[here] = inside % corpus.pairs + first_pair
            first_drawn += seen
            first_pair += corpus.pairs
        return result
