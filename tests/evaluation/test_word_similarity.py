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
    pairs = parse_pairs(
        ["# made up", "Big large 9", "big small 2 more", "", "big zebra 5", "small large 3"], FILE
    )
    words = ("big", "large", "small")
    vectors = np.array([[1, 0], [0.9, 0.1], [0, 1]])
    score = score_similarity("made", pairs, words, vectors)
    assert (score.value, score.used, score.total) == (pytest.approx(100), 3, 4)


def test_analogies_leave_their_own_words_out() -> None:
    questions = parse_analogies(
        [": royal", "man king woman queen", ": other", "man king woman apple", "a b c d"], FILE
    )
    words = ("man", "king", "woman", "queen", "apple")
    vectors = np.array([[1, 0, 0], [1, 0, 2], [0, 1, 0], [0, 1, 2], [-1, -1, 0.0]])
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = score_analogies(questions, words, vectors)
    assert [(one.name, one.value, one.used, one.total) for one in scores] == [
        ("royal", 100, 1, 1),
        ("other", 0, 1, 2),
        ("all", 50, 2, 3),
    ]
    assert score_analogies([], words, vectors)[-1].used == 0


def test_cased_vectors_score_as_in_gensim(tmp_path: Path) -> None:
    """Words of several cases, questions in another case: every group, both kinds of list."""
    from gensim.models import KeyedVectors

    rng = np.random.default_rng(3)
    # Each of 29 words in one to three cases, in no order of case; planted differences make about
    # half of the answers right.
    cased = [
        case(f"word{n}x")
        for n in range(29)
        for case in (str.title, str.lower, str.upper)[: 1 + n % 3]
    ]
    words = tuple(cased[place] for place in rng.permutation(len(cased)))
    base = {
        n: rng.normal(size=7) * 0.4 + (np.arange(7) == n % 2) * 2 + np.eye(7)[2 + n // 2 % 5]
        for n in range(29)
    }
    number_of = {word: int(word.lower().removeprefix("word").removesuffix("x")) for word in words}
    vectors = np.stack([base[number_of[word]] + rng.normal(size=7) * 0.1 for word in words]).astype(
        np.float32
    )
    lines = []
    for group in range(3):
        lines.append(f": group {group}")
        for a, b in rng.integers(0, 15, (23, 2)):
            lines.append(f"Word{2 * a}x WORD{2 * a + 1}x word{2 * b}x wORD{2 * b + 1}X")
    drawn = zip(rng.integers(0, 15, 97), rng.integers(15, 31, 97), rng.random(97), strict=True)
    pairs = [f"Word{a}X\tword{b}x\t{score:.3f}" for a, b, score in drawn]
    (tmp_path / "analogies.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "pairs.txt").write_text("\n".join(pairs) + "\n", encoding="utf-8")
    theirs = KeyedVectors(7)
    theirs.add_vectors(list(words), vectors)
    _, sections = theirs.evaluate_word_analogies(str(tmp_path / "analogies.txt"))
    _, correlation, _ = theirs.evaluate_word_pairs(str(tmp_path / "pairs.txt"))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = score_analogies(parse_analogies(lines, FILE), words, unit)
    wanted = [
        (len(one["correct"]), len(one["correct"]) + len(one["incorrect"])) for one in sections
    ]
    assert [(round(one.value * one.used / 100), one.used) for one in scores] == wanted
    assert 0 < scores[-1].value < 100
    assert scores[-1].used < scores[-1].total
    found = score_similarity("pairs", parse_pairs(pairs, FILE), words, unit)
    assert found.value / 100 == pytest.approx(correlation.statistic, abs=1e-6)
    assert found.used < found.total


@pytest.mark.parametrize("line", ["tiger cat", "tiger cat much", "tiger cat nan"])
def test_a_line_that_is_no_pair_is_named(line: str) -> None:
    with pytest.raises(DataError, match=r"is not a pair") as caught:
        parse_pairs(["a b 1", line], FILE)
    assert str(caught.value).startswith("list.txt:2: ")


def test_an_analogy_has_four_words() -> None:
    with pytest.raises(DataError, match=r"has 3 words; an analogy has four") as caught:
        parse_analogies([": group", "a b c"], FILE)
    assert caught.value.line == 2
