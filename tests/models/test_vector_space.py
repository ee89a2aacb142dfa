"""Neighbours and arithmetic with words."""

import numpy as np
import pytest

from headwise.errors import UsageError
from headwise.models.vector_space import VectorSpace, parse_expression

ROYAL = VectorSpace(
    ["man", "woman", "king", "queen", "apple"],
    np.array([[1, 0, 0], [0, 1, 0], [1, 0, 2], [0, 1, 2], [-3, -3, 0.1]]),
)


def test_neighbours_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(3)
    space = VectorSpace([f"w{number}" for number in range(31)], rng.normal(size=(31, 5)))
    for neighbour in space.nearest("w7", num_words=30):
        x, y = space.vectors[7], space.vectors[space.numbers[neighbour.word]]
        assert neighbour.cosine == pytest.approx(
            float(x @ y) / np.linalg.norm(x) / np.linalg.norm(y), abs=1e-5
        )
    found = [neighbour.cosine for neighbour in space.nearest("w7", num_words=99)]
    assert len(found) == 30
    assert found == sorted(found, reverse=True)


def test_analogies() -> None:
    assert ROYAL.nearest("king - man + woman", num_words=1)[0].word == "queen"
    assert ROYAL.nearest("Queen", num_words=1)[0].word == "king"
    assert ROYAL.cosine("man", "woman") == 0


def test_one_hot_vectors_have_no_neighbours() -> None:
    space = VectorSpace(["a", "b", "c", "d"], np.eye(4))
    assert [neighbour.cosine for neighbour in space.nearest("b")] == [0, 0, 0]


def test_a_zero_vector_is_near_to_nothing() -> None:
    space = VectorSpace(["a", "b"], np.array([[0.0, 0], [1, 0]]))
    assert space.nearest("a")[0].cosine == 0


@pytest.mark.parametrize("scale", [1e-42, 1e-30, 1.0, 3e38])
def test_a_cosine_knows_no_scale(scale: float) -> None:
    """(1, 0), (1, 1) and (1, -1), as small and as large as numbers can be."""
    vectors = np.array([[1, 0], [1, 1], [1, -1]], dtype=np.float64) * scale
    space = VectorSpace(["a", "b", "c"], vectors)
    assert space.cosine("a", "b") == pytest.approx(0.5**0.5, abs=1e-6)
    assert space.cosine("b", "c") == pytest.approx(0, abs=1e-6)


def test_the_sign_grammar() -> None:
    assert parse_expression("king - man + woman") == [(1, "king"), (-1, "man"), (1, "woman")]
    assert parse_expression("- man + mother-in-law") == [(-1, "man"), (1, "mother-in-law")]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "ends without a word"),
        ("king -", "ends without a word"),
        ("king - + man", "follows a sign"),
        ("new york", "'york' follows a word"),
    ],
)
def test_what_is_no_expression(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        ROYAL.nearest(text)


def test_an_unknown_word_gets_the_nearest_spelling() -> None:
    with pytest.raises(
        UsageError, match=r"'quen' is not among the 5 words of this model; did you mean queen"
    ):
        ROYAL.nearest("quen")
    with pytest.raises(UsageError, match="give a word of its training text"):
        ROYAL.nearest("词")


@pytest.mark.parametrize(
    ("text_words", "expression", "is_small"),
    [
        (None, "a - b + c", False),
        (2_000_000, "a - b + c", True),
        (2_000_000, "a", False),
        (99_999_999, "a + b", True),
        (100_000_000, "a + b", False),
    ],
)
def test_sums_of_words_need_much_text(
    text_words: int | None, expression: str, is_small: bool
) -> None:
    space = VectorSpace(["a", "b", "c"], np.eye(3), text_words=text_words)
    assert space.is_too_small_for(expression) is is_small
