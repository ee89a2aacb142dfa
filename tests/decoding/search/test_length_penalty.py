"""Length and coverage penalties, limits and stop rules, worked by hand."""

import math

import pytest
import torch

from headwise.decoding.rules.length_limit import LengthLimit, limit_for
from headwise.decoding.search.length_penalty import (
    AverageLength,
    NoLength,
    WuLength,
    bound_score,
    check_stops,
    penalize,
    penalize_coverage,
)

TOTAL = torch.tensor([-6.0], dtype=torch.float64)


@pytest.mark.parametrize(
    ("penalty", "length", "expected"),
    [
        (NoLength(), 4, -6.0),
        (AverageLength(), 4, -1.5),
        (AverageLength(alpha=0.5), 4, -3.0),
        (AverageLength(alpha=0.0), 4, -6.0),
        (WuLength(alpha=1.0), 7, -3.0),
        (WuLength(alpha=0.5), 19, -3.0),
        (WuLength(alpha=0.6), 1, -6.0),
    ],
)
def test_penalties_by_hand(penalty, length, expected):
    assert penalize(penalty, TOTAL, length).item() == pytest.approx(expected)
    assert penalize(penalty, TOTAL, torch.tensor([length])).item() == pytest.approx(expected)


def test_coverage_by_hand():
    coverage = torch.tensor([[0.5, 2.0, 0.25, 0.0], [1.0, 1.0, 0.0, 0.0]])
    real = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]]).bool()
    expected = [0.2 * (math.log(0.5) + math.log(0.25)), 0.0]
    assert penalize_coverage(coverage, real, beta=0.2).tolist() == pytest.approx(expected)


def test_a_source_token_never_looked_at_costs_much_but_not_everything():
    value = penalize_coverage(torch.zeros(1, 3), torch.ones(1, 3).bool(), beta=1.0).item()
    assert -50 < value < -10


@pytest.mark.parametrize(
    ("setting", "num_source", "expected"),
    [
        (17, 3, 17),
        (LengthLimit(factor=2.0, extra=20, limit=512), 3, 26),
        (LengthLimit(factor=2.0, extra=20, limit=512), 300, 512),
        (LengthLimit(factor=1.5, extra=0, limit=512), 3, 4),
        (LengthLimit(factor=0.0, extra=0, limit=512), 3, 1),
    ],
)
def test_limits_by_hand(setting, num_source, expected):
    assert limit_for(setting, num_source) == expected


@pytest.mark.parametrize(
    ("stop", "alpha", "expected"),
    [
        ("likely", 1.0, -6.0 / 3),
        ("filled", 1.0, -6.0 / 3),
        ("proven", 1.0, -6.0 / 11),
        ("proven", -1.0, -6.0 * 3),
    ],
)
def test_bounds_by_hand(stop, alpha, expected):
    found = bound_score(
        AverageLength(alpha=alpha), TOTAL, length=3, limits=torch.tensor([11]), stop=stop
    )
    assert found.item() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("stop", "expected"),
    [("likely", [False, True, False, True]), ("filled", [True, True, False, True])],
)
def test_stops_by_hand(stop, expected):
    best = torch.tensor([-1.0, -3.0, -9.0, float("-inf")])
    # -inf: not enough finished yet.
    worst = torch.tensor([-2.0, -2.0, float("-inf"), float("-inf")])
    assert check_stops(best, worst, stop=stop).tolist() == expected
