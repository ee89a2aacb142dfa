"""Computes scores that are means over the items of a test set: perplexity, loss, accuracy.

    score = f( Σ sums / Σ weights )        f: exp for perplexity, 100 × for accuracy in percent

Each item (a sentence, a text, a point) has a sum and a weight; for perplexity, the negative
log-likelihood of its tokens and their number. The score of a resample needs only these numbers, so
the bootstrap of `several_seeds.py` needs no model. Tested against: numbers by hand, and the paired
bootstrap of accuracies.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwise.evaluation.several_seeds import Statistics

Numbers = NDArray[np.float64]


def exponential(means: Numbers) -> Numbers:
    """Perplexity of a mean loss; infinite where the number is too large."""
    with np.errstate(over="ignore"):
        return np.exp(means)


def percent(means: Numbers) -> Numbers:
    return 100 * means


def unchanged(means: Numbers) -> Numbers:
    return means


@dataclass(frozen=True)
class MeanStatistics:
    """The sum and the weight of each item, a row each (several_seeds.Statistics)."""

    rows: Numbers
    transform: Callable[[Numbers], Numbers] = unchanged

    @staticmethod
    def of(
        sums: Sequence[float] | Numbers,
        weights: Sequence[float] | Numbers,
        transform: Callable[[Numbers], Numbers] = unchanged,
    ) -> "MeanStatistics":
        return MeanStatistics(
            np.stack([np.asarray(sums, np.float64), np.asarray(weights, np.float64)], axis=1),
            transform,
        )

    def score_sums(self, sums: Numbers) -> Numbers:
        """The score of each row of summed items."""
        total, weight = sums.T
        return self.transform(total / np.maximum(weight, 1e-12))


def have_same_items(first: Statistics, second: Statistics) -> bool:
    """Whether two models were asked the same: as many items, and of means the same weights."""
    if len(first.rows) != len(second.rows):
        return False
    if isinstance(first, MeanStatistics) and isinstance(second, MeanStatistics):
        return bool((first.rows[:, 1] == second.rows[:, 1]).all())
    return True
