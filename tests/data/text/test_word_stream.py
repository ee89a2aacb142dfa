"""Counting, ordering and encoding in one pass, against the slow way."""

from collections import Counter

import numpy as np
import pytest

from headwise.data.text.word_stream import WordStream, in_characters, in_words, read_words
from headwise.errors import DataError

LINES = ["the cat sat on the mat", "", "The dog sat", "a cat and a dog", "rare"]


def test_against_a_counter_and_a_comprehension() -> None:
    sentences = list(in_words(LINES, lowercase=True))
    stream = read_words(sentences, min_count=2)
    counts = Counter(word for sentence in sentences for word in sentence)
    expected = sorted(
        (word for word in counts if counts[word] >= 2), key=lambda word: (-counts[word], word)
    )
    assert list(stream.words) == expected
    assert stream.counts.tolist() == [counts[word] for word in expected]
    kept = [
        [expected.index(word) for word in sentence if word in expected] for sentence in sentences
    ]
    assert stream.ids.tolist() == [number for sentence in kept for number in sentence]
    assert stream.ends.tolist() == np.cumsum([len(sentence) for sentence in kept]).tolist()
    numbers = [number for number, sentence in enumerate(kept) for _ in sentence]
    assert stream.sentences(0, len(stream)).tolist() == numbers
    assert stream.sentences(3, 7).tolist() == numbers[3:7]


def test_case_and_at_most_so_many_words() -> None:
    assert "The" in read_words(in_words(LINES, lowercase=False), min_count=1).words
    assert read_words(in_words(LINES, lowercase=True), min_count=1, max_words=2).words == (
        "the",
        "a",
    )


def test_characters_leave_spaces_out() -> None:
    assert list(in_characters(["词 性", "AB"], lowercase=True)) == [["词", "性"], ["a", "b"]]


@pytest.mark.parametrize("lines", [[], [""], ["word"], ["one two three"]])
def test_a_text_without_two_frequent_words_is_refused(lines: list[str]) -> None:
    with pytest.raises(DataError, match=r"give more text, or lower text.min_count"):
        read_words(in_words(lines, lowercase=True), min_count=3)


def test_the_sentence_of_every_word_of_every_piece() -> None:
    """Empty sentences and pieces that end inside of one included."""
    lengths = [0, 5, 0, 0, 3, 1, 7, 0]
    stream = WordStream(("a",), np.array([16]), np.zeros(16, np.int32), np.cumsum(lengths))
    expected = np.repeat(np.arange(8), lengths)
    for start in range(17):
        for stop in range(start, 17):
            assert stream.sentences(start, stop).tolist() == expected[start:stop].tolist()
