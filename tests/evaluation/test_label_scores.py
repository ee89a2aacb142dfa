import pytest

from headwise.evaluation.label_scores import LabelStatistics, score_labels


def test_counts_by_hand() -> None:
    scores = score_labels(["a", "a", "a", "b", "b", "c"], ["a", "a", "b", "b", "d", "a"])
    assert [one.label for one in scores.classes] == ["a", "b", "c", "d"]
    first = scores.classes[0]
    assert (first.precision, first.recall) == (2 / 3, 2 / 3)
    assert scores.accuracy == pytest.approx(3 / 6)
    assert scores.classes[2].f1 == 0.0
    assert scores.classes[3].as_dict() == {
        "label": "d",
        "count": 0,
        "precision": 0.0,
        "recall": 0.0,
        "f1": 0.0,
    }
    assert scores.macro_f1 == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)
    assert scores.as_dict()["labels"] == 6


def test_statistics_add_up_to_the_accuracy() -> None:
    found, given = [("a", "b"), ("c",), ("a", "a", "b")], [("a", "c"), ("c",), ("b", "a", "b")]
    statistics = LabelStatistics.of(found, given)
    assert statistics.rows.tolist() == [[1, 2], [1, 1], [2, 3]]
    whole = score_labels(
        [label for one in given for label in one], [label for one in found for label in one]
    )
    assert statistics.score_sums(statistics.rows.sum(0)[None])[0] == pytest.approx(
        100 * whole.accuracy
    )
