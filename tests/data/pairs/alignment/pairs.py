"""Sentence pairs in memory, as a token store gives them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwise.data.shards import Ragged, as_ragged


@dataclass(frozen=True)
class MemoryPairs:
    source: Sequence[Sequence[int]]
    target: Sequence[Sequence[int]]

    @property
    def source_lengths(self) -> np.ndarray:
        return np.array([len(side) for side in self.source])

    @property
    def target_lengths(self) -> np.ndarray:
        return np.array([len(side) for side in self.target])

    def gather(self, pairs: np.ndarray) -> tuple[Ragged, Ragged]:
        return (
            as_ragged([self.source[pair] for pair in pairs]),
            as_ragged([self.target[pair] for pair in pairs]),
        )


def draw_pairs(count: int, *, words: int, longest: int, seed: int) -> MemoryPairs:
    generator = np.random.default_rng(seed)

    def side() -> list[list[int]]:
        return [
            generator.integers(4, 4 + words, generator.integers(1, longest + 1)).tolist()
            for _ in range(count)
        ]

    return MemoryPairs(side(), side())
