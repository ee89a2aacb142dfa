"""What an n-gram model is made of: for every order the keys, log-probabilities and back-off weights, in one row each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Level:
    """The n-grams of one order, sorted by key (`counting.py`); natural logarithms.

    `weights` belong to the n-gram as a context: what the probability of a shorter context is multiplied by.
    """

    keys: NDArray[np.int64]
    probabilities: NDArray[np.float32]
    weights: NDArray[np.float32]


@dataclass(frozen=True)
class NgramTables:
    """All orders. With `falls_back` an unseen word gets weight(h) · p(w|h'), else the weight itself is its probability,
    and `floor` (a logarithm) that of every word after a context that was never seen."""

    levels: tuple[Level, ...]
    falls_back: bool
    floor: float

    @property
    def order(self) -> int:
        return len(self.levels)

    @property
    def vocabulary(self) -> int:
        return len(self.levels[0].keys)
