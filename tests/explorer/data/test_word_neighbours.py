"""Neighbours and places of words."""

import numpy as np
import pytest

from headwise.errors import UsageError
from headwise.explorer.data.word_neighbours import map_words, suggest_queries
from headwise.models.vector_space import VectorSpace
from headwise.randomness import numpy_generator

WORDS = tuple(f"word{number}" for number in range(37))
SPACE = VectorSpace(WORDS, numpy_generator("places").normal(size=(37, 11)))


@pytest.mark.parametrize("layout", ["pca", "tsne"])
def test_neighbours_are_the_spaces_own_and_places_fill_the_square(layout: str) -> None:
    found = map_words(SPACE, ["word3", "WORD5 - word7 + word2"], count=5, layout=layout)  # type: ignore[arg-type]
    data = found.as_dict()
    for entry in data["queries"]:
        own = SPACE.nearest(entry["query"], num_words=5)
        assert [one["word"] for one in entry["nearest"]] == [one.word for one in own]
        assert [one["cosine"] for one in entry["nearest"]] == pytest.approx(
            [one.cosine for one in own], abs=1e-6
        )
    assert [one["word"] for one in data["words"] if one["asked"]] == [
        "word3",
        "word5",
        "word7",
        "word2",
    ]
    places = np.array([(one["x"], one["y"]) for one in data["words"]])
    assert np.abs(places).max() == pytest.approx(1.0)
    assert len({one["word"] for one in data["words"]}) == len(data["words"])


@pytest.mark.parametrize(
    ("queries", "count"),
    [([], 5), (["word1"], 0), (["word1"], 51), ([str(n) for n in range(33)], 5)],
)
def test_sizes_are_bounded(queries: list[str], count: int) -> None:
    with pytest.raises(UsageError, match="were asked for"):
        map_words(SPACE, queries, count=count)


def test_words_to_begin_with_are_known() -> None:
    assert all(word in SPACE.numbers for word in suggest_queries(SPACE))
    familiar = VectorSpace(
        ["king", "the", "queen", "three", "x"], numpy_generator("few").normal(size=(5, 3))
    )
    assert suggest_queries(familiar) == ["king", "queen", "three"]
