"""Stores the tables of an n-gram model: keys, log-probabilities and back-off weights of every
order.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Level:
    """The n-grams of one order, sorted by key (`counting.py`); natural logarithms.

    `weights` belong to the n-gram as a context: what the probability of a shorter context is
    multiplied by.
    """

    keys: NDArray[np.int64]
    probabilities: NDArray[np.float32]
    weights: NDArray[np.float32]


@dataclass(frozen=True)
class NgramTables:
    """All orders.

    With `falls_back` an unseen word gets weight(h) · p(w|h'). Otherwise the weight itself is its
    probability, and `floor` (a logarithm) that of every word after an unseen context.
    """

    levels: tuple[Level, ...]
    falls_back: bool
    floor: float

    @property
    def order(self) -> int:
        return len(self.levels)

    @property
    def vocabulary(self) -> int:
        return len(self.levels[0].keys)

    def as_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays by the names they are stored under; keys of single words (0, 1, 2, …) are not."""
        arrays: dict[str, NDArray[Any]] = {
            "floor": np.array([self.floor]),
            "falls_back": np.array([self.falls_back]),
        }
        for number, level in enumerate(self.levels, start=1):
            if number > 1:
                arrays[f"{number}.keys"] = level.keys
            arrays[f"{number}.probabilities"] = level.probabilities
            if number < self.order:
                arrays[f"{number}.weights"] = level.weights
        return arrays

    @staticmethod
    def from_arrays(arrays: Mapping[str, NDArray[Any]]) -> "NgramTables | None":
        """The tables again; None if number, type, size, order or range of the arrays are wrong."""
        order = sum(name.endswith(".probabilities") for name in arrays)
        names = {"floor", "falls_back", *(f"{n}.keys" for n in range(2, order + 1))}
        names |= {f"{n}.weights" for n in range(1, order)} | {
            f"{n}.probabilities" for n in range(1, order + 1)
        }
        if (
            order == 0
            or names != arrays.keys()
            or any(array.ndim != 1 for array in arrays.values())
        ):
            return None
        levels: list[Level] = []
        for number in range(1, order + 1):
            probabilities = arrays[f"{number}.probabilities"]
            weights = (
                arrays[f"{number}.weights"]
                if number < order
                else np.zeros(len(probabilities), np.float32)
            )
            keys = (
                arrays[f"{number}.keys"]
                if number > 1
                else np.arange(len(probabilities), dtype=np.int64)
            )
            level = Level(keys, probabilities, weights)
            limit = len(levels[-1].keys) * len(levels[0].keys) if levels else len(keys)
            if not _is_sound(level, limit=limit):
                return None
            levels.append(level)
        floor, falls_back = arrays["floor"], arrays["falls_back"]
        if (
            len(floor) != 1
            or len(falls_back) != 1
            or floor.dtype != np.float64
            or falls_back.dtype != np.bool_
        ):
            return None
        return NgramTables(tuple(levels), falls_back=bool(falls_back[0]), floor=float(floor[0]))


def _is_sound(level: Level, *, limit: int) -> bool:
    """As many of each, of the right types, keys rising and inside the table of contexts, no NaN."""
    keys, probabilities, weights = level.keys, level.probabilities, level.weights
    types = (keys.dtype, probabilities.dtype, weights.dtype) == (np.int64, np.float32, np.float32)
    if not types or not len(keys) == len(probabilities) == len(weights):
        return False
    if len(keys) and (keys[0] < 0 or keys[-1] >= limit or (keys[1:] <= keys[:-1]).any()):
        return False
    return not (np.isnan(probabilities).any() or np.isnan(weights).any())
