"""Scores of word vectors against scipy and small cases; their lists against every defect."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from headwise.errors import DataError
from headwise.evaluation.word_similarity import (
    parse_analogies,
    parse_pairs,
    score_analogies,
    score_similarity,
    spearman,
)

FILE = Path("list.txt")


def test_spearman_is_scipys_ties_too() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 13, 101), rng.integers(0, 17, 101)
    assert spearman(list(x), list(y)) == pytest.approx(spearmanr(x, y)[0])
    assert spearman([1, 1, 1], [1, 2, 3]) == 0
    assert spearman([1], [2]) == 0


def test_pairs_with_unknown_words_are_counted_out() -> None:
    pairs = parse_pairs(["# made up", "Big large 9", "big small 2 more", "", "big zebra 5", "small large 3"], FILE)
    numbers = {"big": 0, "large": 1, "small": 2}
    vectors = np.array([[1, 0], [0.9, 0.1], [0, 1]])
    score = score_similarity("made", pairs, numbers, vectors)
    assert (score.value, score.used, score.total) == (pytest.approx(100), 3, 4)


def test_analogies_leave_their_own_words_out() -> None:
    questions = parse_analogies([": royal", "man king woman queen", ": other", "man king woman apple", "a b c d"], FILE)
    numbers = {"man": 0, "king": 1, "woman": 2, "queen": 3, "apple": 4}
    vectors = np.array([[1, 0, 0], [1, 0, 2], [0, 1, 0], [0, 1, 2], [-1, -1, 0.0]])
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = score_analogies(questions, numbers, vectors)
    assert [(one.name, one.value, one.used, one.total) for one in scores] == [
        ("royal", 100, 1, 1),
        ("other", 0, 1, 2),
        ("all", 50, 2, 3),
    ]
    assert score_analogies([], numbers, vectors)[-1].used == 0


@pytest.mark.parametrize("line", ["tiger cat", "tiger cat much", "tiger cat nan"])
def test_a_line_that_is_no_pair_is_named(line: str) -> None:
    with pytest.raises(DataError, match=r"is not a pair") as caught:
        parse_pairs(["a b 1", line], FILE)
    assert str(caught.value).startswith("list.txt:2: ")


def test_an_analogy_has_four_words() -> None:
    with pytest.raises(DataError, match=r"has 3 words; an analogy has four") as caught:
        parse_analogies([": group", "a b c"], FILE)
    assert caught.value.line == 2
