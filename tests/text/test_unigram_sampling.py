from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from headwise.text.piece_table import PieceTable
from headwise.text.unigram_sampling import PieceTree, sample_words

from .corpus import ENGLISH
from .cut_words import as_texts, by_length, in_characters, seeds, small_tokenizer

WORDS = sorted({"▁" + word for word in ENGLISH})


@pytest.fixture(scope="module")
def table() -> PieceTable:
    return PieceTable.of(small_tokenizer("unigram").model)


def test_a_large_alpha_is_the_best_segmentation(table: PieceTable) -> None:
    tokenizer, tree = small_tokenizer("unigram"), PieceTree.of(table)
    for words in by_length(WORDS).values():
        numbers = np.arange(len(words))
        cut = sample_words(
            in_characters(table, words), tree, alpha=1e4, words=numbers, seeds=seeds(len(words))
        )
        expected = [tokenizer.pieces(tokenizer.encode(word[1:])) for word in words]
        assert as_texts(table, cut) == list(map(tuple, expected))


@pytest.mark.parametrize("alpha", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("word", ["▁the", "▁house", "▁kalo"])
def test_segmentations_are_as_frequent_as_their_probabilities(
    table: PieceTable, word: str, alpha: float
) -> None:
    count = 20_000
    cut = sample_words(
        in_characters(table, [word]),
        PieceTree.of(table),
        alpha=alpha,
        words=np.zeros(count, dtype=np.int64),
        seeds=seeds(count),
    )
    found = Counter(as_texts(table, cut))
    scores = {text: table.scores[number] for number, text in enumerate(table.texts) if text}
    weights = {
        one: float(np.exp(alpha * sum(scores[piece] for piece in one)))
        for one in segmentations(word, set(scores))
    }
    assert set(found) <= set(weights)
    for one, weight in weights.items():
        share = weight / sum(weights.values())
        error = 4.5 * np.sqrt(share * (1 - share) / count) + 1e-4
        assert found[one] / count == pytest.approx(share, abs=error)


def test_a_draw_does_not_depend_on_the_others(table: PieceTable) -> None:
    words = by_length(WORDS)[7]
    numbers, tree = in_characters(table, words), PieceTree.of(table)
    draws, own = np.arange(60) % len(words), seeds(60)
    whole = as_texts(table, sample_words(numbers, tree, alpha=0.2, words=draws, seeds=own))
    some = sample_words(numbers, tree, alpha=0.2, words=draws[7::3], seeds=own[7::3])
    assert whole[7::3] == as_texts(table, some)


def test_a_word_without_a_segmentation_has_no_pieces() -> None:
    table = PieceTable(("", "ab", "b"), np.array([0.0, -1.0, -1.0]))
    one = np.zeros(1, dtype=np.int64)
    cut = sample_words(
        in_characters(table, ["ba"]), PieceTree.of(table), alpha=1, words=one, seeds=seeds(1)
    )
    assert cut[1].tolist() == [0]


def segmentations(word: str, pieces: set[str]) -> Iterator[tuple[str, ...]]:
    if not word:
        yield ()
    for size in range(1, len(word) + 1):
        if word[:size] in pieces:
            for rest in segmentations(word[size:], pieces):
                yield (word[:size], *rest)
