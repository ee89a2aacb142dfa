"""Paired tests: equal systems, clear differences, an enumerated case, and sacreBLEU's own tests."""

import itertools
import json

import numpy as np
import pytest
import sacrebleu
from sacrebleu.significance import PairedTest

from headwise.errors import DataError
from headwise.evaluation.significance import compare_systems
from headwise.evaluation.translation import build_metrics
from tests.evaluation.conftest import spoil

METHODS = ["bootstrap", "randomization"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_equal_systems_do_not_differ(references, systems, method, metric):
    found = compare_systems(
        systems["good"], systems["good"], references, metric=metric, method=method, num_draws=100
    )
    assert found.difference == 0
    assert found.p_value == 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_a_clear_difference_is_found(references, systems, method, metric):
    found = compare_systems(
        systems["bad"], systems["good"], references, metric=metric, method=method, num_draws=300
    )
    assert found.p_value < 0.02
    assert (found.difference > 0) == (metric != "ter")
    assert found.difference == pytest.approx(found.system - found.baseline)
    if method == "bootstrap":
        assert found.low < found.difference < found.high


@pytest.mark.parametrize("method", METHODS)
def test_p_is_uniform_when_systems_are_equally_good(references, method):
    """Forty pairs of systems spoiled at the same rate: p < 0.05 should happen twice, and p is 0.5
    on average.
    """
    values = []
    for pair in range(40):
        one, two = spoil(references, 0.2, 2 * pair), spoil(references, 0.2, 2 * pair + 1)
        values.append(
            compare_systems(
                one, two, references, metric="chrf", method=method, num_draws=100
            ).p_value
        )
    # More than 7 of 40 at 5 % has probability 0.0007.
    assert sum(value < 0.05 for value in values) <= 7
    # More than three and a half standard errors.
    assert np.mean(values) == pytest.approx(0.5, abs=0.17)


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_decides(references, systems, method):
    one, two = systems["good"], systems["also_good"]
    first = compare_systems(one, two, references, method=method, num_draws=50)
    assert first == compare_systems(one, two, references, method=method, num_draws=50)


def test_order_only_turns_the_sign(references, systems):
    one = compare_systems(systems["good"], systems["bad"], references, num_draws=50)
    other = compare_systems(systems["bad"], systems["good"], references, num_draws=50)
    assert one.difference == pytest.approx(-other.difference)


def test_randomization_approaches_full_enumeration(references, systems):
    """With seven sentences all 2^7 ways to swap can be tried."""
    first, second, gold = systems["good"][:7], systems["bad"][:7], references[:7]
    metric = sacrebleu.CHRF()

    def difference(swap):
        one = [b if s else a for a, b, s in zip(first, second, swap, strict=True)]
        two = [a if s else b for a, b, s in zip(first, second, swap, strict=True)]
        return abs(metric.corpus_score(two, [gold]).score - metric.corpus_score(one, [gold]).score)

    observed = difference([0] * 7)
    exact = np.mean(
        [difference(swap) >= observed - 1e-9 for swap in itertools.product([0, 1], repeat=7)]
    )
    found = compare_systems(first, second, gold, metric="chrf", num_draws=4000)
    assert found.p_value == pytest.approx(exact, abs=0.03)


def test_agrees_with_sacrebleu(references, systems):
    worse = [
        bad if i % 7 == 0 else good
        for i, (good, bad) in enumerate(zip(systems["good"], systems["bad"], strict=True))
    ]
    _, theirs = PairedTest(
        [("one", systems["also_good"]), ("two", worse)],
        {"BLEU": sacrebleu.BLEU()},
        [references],
        "ar",
        n_samples=1000,
    )()
    ours = compare_systems(systems["also_good"], worse, references, num_draws=1000)
    assert ours.system == pytest.approx(theirs["BLEU"][1].score)
    assert ours.p_value == pytest.approx(theirs["BLEU"][1].p_value, abs=0.06)


def test_metrics_carry_their_settings():
    metrics = build_metrics("zh")
    found = compare_systems(
        ["猫在垫子上。"], ["猫坐在垫子上。"], ["猫坐在垫子上。"], metrics=metrics, num_draws=10
    )
    assert "tok:zh" in found.signature
    assert found.name == "BLEU"
    assert json.loads(json.dumps(found.as_dict()))["method"] == "randomization"


def test_unequal_numbers_are_refused():
    with pytest.raises(DataError, match="1 translations but 2 references"):
        compare_systems(["a", "b"], ["a"], ["a", "b"])
