"""The neighbours of words in a vector space, and their coordinates on a map of words.

    asked    what the user typed: words, or sums such as king - man + woman
    nearest  the words with the largest cosine to each of them
    places   two coordinates for every word of both (plane_projection.py: t-SNE or PCA)

Tested against: VectorSpace.nearest, and the projections themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from headwise.errors import UsageError
from headwise.explorer.data.plane_projection import project_pca, project_tsne
from headwise.models.vector_space import VectorSpace, parse_expression

MAX_QUERIES, MAX_NEIGHBOURS, MAX_MAP = 32, 50, 400
FAMILIAR = [
    "king",
    "queen",
    "paris",
    "france",
    "three",
    "four",
    "国王",
    "王后",
    "北京",
    "上海",
    "我们",
    "他们",
]


@dataclass(frozen=True)
class WordMap:
    """The neighbours of each query, and all words with their coordinates."""

    nearest: dict[str, list[tuple[str, float]]]
    words: tuple[str, ...]
    places: np.ndarray
    asked: tuple[str, ...]
    """The words that were typed, as the vocabulary spells them."""
    doubtful: frozenset[str] = frozenset()
    """The sums for which the training text was too short."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "queries": [
                {
                    "query": query,
                    "nearest": [
                        {"word": word, "cosine": round(cosine, 6)} for word, cosine in found
                    ],
                    "too_little_text": query in self.doubtful,
                }
                for query, found in self.nearest.items()
            ],
            "words": [
                {
                    "word": word,
                    "x": round(float(x), 5),
                    "y": round(float(y), 5),
                    "asked": word in self.asked,
                }
                for word, (x, y) in zip(self.words, self.places, strict=True)
            ],
        }


def suggest_queries(space: VectorSpace) -> list[str]:
    """Words to begin with that this model knows: well-known examples, or else words of medium
    frequency.
    """
    known = [word for word in FAMILIAR if word in space.numbers][:6]
    return known if len(known) >= 3 else list(space.words[len(space.words) // 20 :][:6])


def map_words(
    space: VectorSpace,
    queries: Sequence[str],
    *,
    count: int = 10,
    layout: Literal["tsne", "pca"] = "pca",
) -> WordMap:
    """The neighbours of each word or sum, and all of them on a map scaled to −1 … 1."""
    queries = list(dict.fromkeys(queries))
    if not 1 <= len(queries) <= MAX_QUERIES or not 1 <= count <= MAX_NEIGHBOURS:
        raise UsageError(
            f"{len(queries)} words with {count} neighbours each were asked for; give 1 to "
            f"{MAX_QUERIES} words and 1 to {MAX_NEIGHBOURS} neighbours",
            f"要求 {len(queries)} 个词、每个 {count} 个邻居；请给出 1 到 {MAX_QUERIES} 个词、1 到 "
            f"{MAX_NEIGHBOURS} 个邻居",
        )
    nearest = {
        query: [(one.word, one.cosine) for one in space.nearest(query, num_words=count)]
        for query in queries
    }
    asked = tuple(
        dict.fromkeys(
            space.words[space.number_of(word)]
            for query in queries
            for _, word in parse_expression(query)
        )
    )
    words = list(
        dict.fromkeys([*asked, *(word for found in nearest.values() for word, _ in found)])
    )[:MAX_MAP]
    vectors = space.unit_vectors[[space.numbers[word] for word in words]]
    places = project_pca(vectors) if layout == "pca" else project_tsne(vectors)
    places = places - (places.max(0) + places.min(0)) / 2
    places = places / max(float(np.abs(places).max()), 1e-12)
    doubtful = frozenset(query for query in queries if space.is_too_small_for(query))
    return WordMap(nearest, tuple(words), places, asked, doubtful)
