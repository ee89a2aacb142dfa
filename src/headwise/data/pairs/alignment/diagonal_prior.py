"""The prior of an alignment: a target token translates a source token at the same share of its
sentence.

For target token j of m and source token i of n, both counted from 1,

    h(i, j) = -|j / m - i / n|         p(i | j) = exp(λ h(i, j)) / Σ_i' exp(λ h(i', j))

λ is the tension: 0 makes all source tokens equally likely, a large one keeps links close to the
diagonal. The best λ for given expected links is where the mean h of the links equals the mean h of
the prior. The difference decreases in λ, so Newton's method within a shrinking bracket finds it.

Dyer, Chahuneau & Smith 2013, *A Simple, Fast, and Effective Reparameterization of IBM Model 2*.
Tested against: hand-worked rows; λ is recovered from links that were made with it.
"""

import numpy as np

from headwise.data.pairs.alignment.cells import Shapes
from headwise.data.shards import concatenated_ranges

LOWEST, HIGHEST = 0.0, 30.0
NUM_STEPS = 12


class DiagonalPrior:
    """The prior of all cells of all shapes of a corpus."""

    def __init__(self, shapes: Shapes) -> None:
        num_source = np.repeat(shapes.num_source, shapes.num_target)
        begin = np.zeros_like(num_source)
        row = concatenated_ranges(np.zeros_like(shapes.num_target), shapes.num_target) + 1
        share = row / np.repeat(shapes.num_target, shapes.num_target)
        column = concatenated_ranges(begin, num_source) + 1
        self.closeness = -np.abs(
            np.repeat(share, num_source) - column / np.repeat(num_source, num_source)
        )
        """h of each cell."""
        self._num_cells = num_source
        self._first_cell = np.cumsum(num_source) - num_source

    def probabilities(self, tension: float) -> np.ndarray:
        """p(i | j) of each cell."""
        weights = np.exp(tension * self.closeness)
        return weights / self._spread(self._sum(weights))

    def fit_tension(self, links: np.ndarray, *, start: float) -> float:
        """The tension under which the expected number of links in each cell is most likely."""
        of_row, observed = self._sum(links), float(links @ self.closeness)
        low, high, tension = LOWEST, HIGHEST, start
        for _ in range(NUM_STEPS):
            prior = self.probabilities(tension)
            mean = self._sum(prior * self.closeness)
            slope = observed - float(of_row @ mean)
            low, high = (tension, high) if slope > 0 else (low, tension)
            spread = self._sum(prior * self.closeness**2) - mean**2
            step = slope / max(float(of_row @ spread), 1e-12)
            tension = tension + step if low < tension + step < high else (low + high) / 2
        return tension

    def _sum(self, x: np.ndarray) -> np.ndarray:
        """Over the source tokens of each target token."""
        return np.add.reduceat(x, self._first_cell)

    def _spread(self, x: np.ndarray) -> np.ndarray:
        return np.repeat(x, self._num_cells)
