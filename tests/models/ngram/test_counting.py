"""Counting against a dictionary of tuples."""

from collections import Counter, defaultdict

import numpy as np
import pytest

from headwise.errors import DataError
from headwise.models.ngram.counting import TokenStream, continuation_counts, count_ngrams
from headwise.text.tokenizer import BOS, EOS
from tests.models.ngram.texts import SIZE, draw_sentences

ORDER = 4


def _count_by_hand(sentences: list[list[int]], length: int) -> Counter[tuple[int, ...]]:
    counts: Counter[tuple[int, ...]] = Counter()
    for sentence in sentences:
        whole = (BOS, *sentence, EOS)
        counts.update(whole[end - length : end] for end in range(length, len(whole) + 1))
    return counts


def _spell(tables: list, order: int) -> list[tuple[int, ...]]:
    """The words of every n-gram, from the contexts of the tables."""
    names: list[tuple[int, ...]] = [(word,) for word in range(SIZE)]
    for table in tables[1:order]:
        last = table.keys - table.contexts.astype(np.int64) * SIZE
        names = [
            (*names[context], int(word)) for context, word in zip(table.contexts, last, strict=True)
        ]
    return names


def test_counts_are_those_of_a_dictionary() -> None:
    sentences = draw_sentences()
    tables = count_ngrams(TokenStream.of_sentences(sentences), order=ORDER, vocabulary=SIZE)
    for order in range(2, ORDER + 1):
        names = _spell(tables, order)
        assert dict(zip(names, tables[order - 1].counts.tolist(), strict=True)) == _count_by_hand(
            sentences, order
        )
        shorter = _spell(tables, order - 1)
        assert [shorter[place] for place in tables[order - 1].suffixes] == [
            name[1:] for name in names
        ]
        assert tables[order - 1].at_start.tolist() == [name[0] == BOS for name in names]
    words = _count_by_hand(sentences, 1)
    assert tables[0].counts.tolist() == [
        0 if word == BOS else words[(word,)] for word in range(SIZE)
    ]


def test_continuation_counts_are_numbers_of_different_words_before() -> None:
    sentences = draw_sentences()
    tables = count_ngrams(TokenStream.of_sentences(sentences), order=3, vocabulary=SIZE)
    before = defaultdict(set)
    for name in _count_by_hand(sentences, 3):
        before[name[1:]].add(name[0])
    raw = _count_by_hand(sentences, 2)
    expected = [raw[name] if name[0] == BOS else len(before[name]) for name in _spell(tables, 2)]
    assert continuation_counts(tables)[1].tolist() == expected
    assert continuation_counts(tables)[2] is tables[2].counts


def test_a_stream_knows_the_places_in_a_sentence() -> None:
    stream = TokenStream.of_sentences([[5, 7], [], [9]])
    assert stream.tokens.tolist() == [BOS, 5, 7, EOS, BOS, EOS, BOS, 9, EOS]
    assert stream.places.tolist() == [0, 1, 2, 3, 0, 1, 0, 1, 2]


def test_nothing_to_count() -> None:
    with pytest.raises(DataError, match="the text has no sentence to count"):
        count_ngrams(TokenStream.of_sentences([]), order=3, vocabulary=SIZE)


def test_progress_is_told_every_order() -> None:
    told: list[int] = []
    count_ngrams(TokenStream.of_sentences([[5, 7]]), order=3, vocabulary=SIZE, progress=told.append)
    assert told == [1, 2, 3]
