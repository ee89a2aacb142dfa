"""The diagonal prior by hand, and its tension recovered from links made with it."""

import math

import numpy as np
import pytest

from headwise.data.pairs.alignment.cells import Shapes
from headwise.data.pairs.alignment.diagonal_prior import DiagonalPrior


def test_by_hand() -> None:
    # 3 source and 2 target tokens: j/m is 1/2 and 1, i/n is 1/3, 2/3 and 1.
    prior = DiagonalPrior(Shapes(np.array([3]), np.array([2])))
    assert prior.closeness == pytest.approx([-1 / 6, -1 / 6, -1 / 2, -2 / 3, -1 / 3, 0])
    weights = [math.exp(3 * -distance) for distance in (2 / 3, 1 / 3, 0)]
    expected = [weight / sum(weights) for weight in weights]
    assert prior.probabilities(3.0)[3:] == pytest.approx(expected)
    assert prior.probabilities(0.0) == pytest.approx([1 / 3] * 6)


@pytest.mark.parametrize("tension", [0.7, 2.0, 11.0])
def test_tension_is_recovered(tension: float) -> None:
    prior = DiagonalPrior(Shapes.of(np.array([5, 7, 11]), np.array([7, 3, 11])))
    links = prior.probabilities(tension) * 1000
    assert prior.fit_tension(links, start=4.0) == pytest.approx(tension, abs=1e-4)


def test_links_on_the_diagonal_have_the_highest_tension() -> None:
    prior = DiagonalPrior(Shapes(np.array([5]), np.array([5])))
    assert prior.fit_tension(np.eye(5).ravel(), start=4.0) > 25
