from collections import Counter, defaultdict

import numpy as np
import pytest

from headwise.text.bpe_dropout import Merges, cut_words
from headwise.text.piece_table import PieceTable

from .corpus import CHINESE, ENGLISH
from .cut_words import as_texts, by_length, in_characters, seeds, small_tokenizer

WORDS = sorted({*("▁" + word for word in ENGLISH), *CHINESE, "▁thehouse", "▁ee", "▁lololo"})


@pytest.fixture(scope="module")
def table() -> PieceTable:
    return PieceTable.of(small_tokenizer("bpe").model)


def test_without_dropout_words_are_cut_as_by_sentencepiece(table: PieceTable) -> None:
    tokenizer, merges = small_tokenizer("bpe"), Merges.of(table)
    for words in by_length([word for word in WORDS if word[0] == "▁"]).values():
        cut = cut_words(in_characters(table, words), merges, probability=0, seeds=seeds(len(words)))
        expected = [tokenizer.pieces(tokenizer.encode(word[1:])) for word in words]
        assert as_texts(table, cut) == list(map(tuple, expected))


def test_with_all_merges_left_out_only_characters_remain(table: PieceTable) -> None:
    for words in by_length(WORDS).values():
        cut = cut_words(
            in_characters(table, words), Merges.of(table), probability=1, seeds=seeds(len(words))
        )
        assert as_texts(table, cut) == list(map(tuple, words))


@pytest.mark.parametrize("probability", [0.1, 0.5])
@pytest.mark.parametrize("word", ["▁the", "▁tree", "▁lolo", "▁kalo", "房子"])
def test_segmentations_are_as_frequent_as_the_merges_make_them(
    table: PieceTable, word: str, probability: float
) -> None:
    count = 20_000
    cut = cut_words(
        in_characters(table, [word]).repeat(count, 0),
        Merges.of(table),
        probability=probability,
        seeds=seeds(count),
    )
    found = Counter(as_texts(table, cut))
    expected = distribution(table, tuple(word), probability)
    assert sum(expected.values()) == pytest.approx(1)
    assert set(found) <= set(expected)
    for segmentation, share in expected.items():
        error = 4.5 * np.sqrt(share * (1 - share) / count) + 1e-4
        assert found[segmentation] / count == pytest.approx(share, abs=error)


def test_a_word_is_cut_alike_among_any_others(table: PieceTable) -> None:
    words = by_length(WORDS)[7]
    numbers, merges = in_characters(table, words), Merges.of(table)
    own = seeds(len(words))
    whole = as_texts(table, cut_words(numbers, merges, probability=0.3, seeds=own))
    some = as_texts(table, cut_words(numbers[3::2], merges, probability=0.3, seeds=own[3::2]))
    assert whole[3::2] == some
    assert whole != as_texts(table, cut_words(numbers, merges, probability=0.3, seeds=own + 99))


def distribution(
    table: PieceTable, symbols: tuple[str, ...], probability: float
) -> dict[tuple[str, ...], float]:
    """Of the segmentations, from all outcomes of each step: the best merge that is not left out
    is made; with k possible ones, all are left out with probability^k."""
    scores = {text: table.scores[number] for number, text in enumerate(table.texts) if text}
    places = [i for i in range(len(symbols) - 1) if symbols[i] + symbols[i + 1] in scores]
    places.sort(key=lambda i: (-scores[symbols[i] + symbols[i + 1]], i))
    result: dict[tuple[str, ...], float] = defaultdict(float)
    for number, i in enumerate(places):
        merged = (*symbols[:i], symbols[i] + symbols[i + 1], *symbols[i + 2 :])
        for segmentation, share in distribution(table, merged, probability).items():
            result[segmentation] += (1 - probability) * probability**number * share
    result[symbols] += probability ** len(places)
    return result
