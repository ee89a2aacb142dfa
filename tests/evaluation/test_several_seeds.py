"""Student's t from tables, Welch's test by hand, the paired bootstrap as the case of one seed, and
coverage.
"""

import math

import numpy as np
import pytest

from headwise.evaluation.several_seeds import SeedScores, student_quantile, student_tail
from headwise.evaluation.significance import compare_systems
from headwise.evaluation.translation import build_metrics

REFERENCES = [
    f"the {word} dog is here and sleeps well today"
    for word in ("old", "big", "red", "sad", "new", "wet", "fat")
]
GOOD = [line.replace("well", "good") for line in REFERENCES]
BAD = [
    line.replace("dog is here", "cat was there") if number % 2 else line
    for number, line in enumerate(GOOD)
]


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.706), (2, 4.303), (4, 2.776), (10, 2.228), (30, 2.042), (math.inf, 1.960)],
)
def test_quantiles_are_those_of_the_printed_tables(freedom: float, quantile: float) -> None:
    assert student_quantile(0.975, freedom) == pytest.approx(quantile, abs=5e-4)
    assert 2 * student_tail(quantile, freedom) == pytest.approx(0.05, abs=2e-4)


def test_one_seed_is_the_paired_bootstrap() -> None:
    metric = build_metrics()["bleu"]
    difference = SeedScores.of(metric, [GOOD], REFERENCES).difference(
        SeedScores.of(metric, [BAD], REFERENCES)
    )
    known = compare_systems(BAD, GOOD, REFERENCES, method="bootstrap")
    assert difference.value == pytest.approx(known.difference)
    assert known.low is not None
    # One interval is of percentiles, the other of a normal distribution with the draws' variance.
    assert difference.low == pytest.approx(
        known.low, abs=0.25 * (difference.value - difference.low)
    )


def _flat(*values: float) -> SeedScores:
    """Seeds that score the same on every test set."""
    return SeedScores(np.array(values), np.tile(np.array(values)[:, None], (1, 5)))


def test_seeds_alone_are_welchs_test() -> None:
    # By hand: means 30 and 33, s² = 1 and 1, n = 3: V = 2/3, ν = V² / (2 · (1/3)² / 2) = 4, t = 3 /
    # √(2/3) = 3.674, p = 0.0213.
    found = _flat(32, 33, 34).difference(_flat(29, 30, 31))
    assert found.p_value == pytest.approx(0.0213, abs=1e-4)
    assert found.high - found.value == pytest.approx(2.776 * math.sqrt(2 / 3), abs=1e-3)
    assert _flat(31, 33, 35).spread == 2.0
    assert _flat(31).spread is None


def test_an_interval_ends_where_scores_end() -> None:
    two = _flat(3.0, 5.0).estimate()  # 4 ± 12.7
    assert (two.low, two.is_cut) == (0.0, True)
    assert two.high == pytest.approx(4 + 12.706, abs=1e-3)
    near = _flat(97.0, 99.0).estimate()
    assert (near.high, near.is_cut) == (100.0, True)
    inside = _flat(40.0, 41.0, 42.0).estimate()
    assert not inside.is_cut
    assert inside.low == pytest.approx(41 - 4.303 / 3**0.5, abs=1e-3)
    apart = _flat(10.0, 40.0).difference(_flat(20.0, 60.0))
    assert (apart.low, apart.high, apart.is_cut) == (-100.0, pytest.approx(apart.high), True)
    assert apart.high <= 100


def test_equal_models_do_not_differ() -> None:
    assert _flat(30, 31).difference(_flat(30, 31)).p_value == 1.0
    assert _flat(30).difference(_flat(30)).p_value == 1.0
    assert _flat(31).difference(_flat(30)).p_value == 0.0


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    generator = np.random.default_rng(5)
    hits = 0
    for _ in range(150):
        shift = generator.normal(0, 0.6)  # of this test set, the same for all seeds
        values = 30 + shift + generator.normal(0, 0.5, size=3)
        draws = values[:, None] + generator.normal(0, 0.6, size=400)[None]
        found = SeedScores(values, draws).estimate()
        hits += found.low <= 30 <= found.high
    assert 0.91 <= hits / 150 <= 1.0
