"""Means over items: numbers by hand, and which models were asked the same."""

import math

import numpy as np
import pytest

from headwise.evaluation.item_means import (
    MeanStatistics,
    exponential,
    have_same_items,
    percent,
)
from headwise.evaluation.label_scores import LabelStatistics
from headwise.evaluation.several_seeds import SeedScores


def test_a_mean_weighs_items_by_their_tokens() -> None:
    found = MeanStatistics.of([6.0, 1.0], [3, 1], exponential)
    assert found.score_sums(found.rows.sum(0)[None])[0] == pytest.approx(math.exp(7 / 4))
    assert found.score_sums(np.array([[1e6, 1.0]]))[0] == math.inf


def test_an_accuracy_has_the_draws_of_label_statistics() -> None:
    given = [["a"], ["b", "c"], ["a", "a"]]
    labels = LabelStatistics.of([["a"], ["b", "b"], ["c", "a"]], given)
    means = MeanStatistics.of([1, 1, 1], [1, 2, 2], percent)
    first, second = (SeedScores.of_statistics([each]) for each in (labels, means))
    assert np.allclose(first.draws, second.draws)
    assert first.mean == pytest.approx(second.mean)


def test_perplexities_are_not_cut_at_a_hundred() -> None:
    scores = SeedScores.of_statistics([MeanStatistics.of([6.0, 7.0, 5.0], [1, 1, 1], exponential)])
    found = scores.estimate((1.0, math.inf))
    assert found.value == pytest.approx(math.exp(6))
    assert found.high > 403 > found.low >= 1
    assert scores.difference(scores, (1.0, math.inf)).p_value == 1


@pytest.mark.parametrize(("weights", "same"), [([3, 1], True), ([1, 3], False), ([3, 1, 0], False)])
def test_other_tokens_are_another_question(weights: list[int], same: bool) -> None:
    first = MeanStatistics.of([1.0, 1.0], [3, 1])
    assert have_same_items(first, MeanStatistics.of([1.0] * len(weights), weights)) is same
