"""Words found by their bytes are those the dictionary finds, whatever stands in the lines."""

import numpy as np
import pytest

from headwise.randomness import numpy_generator
from headwise.text.vocabulary import Vocabulary
from headwise.text.word_lookup import WordFinder
from headwise.text.word_tokenizer import WordTokenizer

ODD = [
    "",
    "   ",
    "the cat\tsat\n",
    "\n the\x0bcat \x1c sat\r\n",
    "The CAT sat, the",
    "incomprehensible incomprehensibl incomprehensibles sixteen_letters_ sixteen_letters",
    "a" * 999 + " the",
    "the",
]
OTHER = [
    "the\x00 cat",
    "the\x01cat",
    "café the",
    "the\u3000cat\u00a0sat",
    "İ the",
    "the\x7f",
    "\ud800 the",
    "\x1fthe",
]
WORDS = [
    "the",
    "cat",
    "sat",
    "sat,",
    "café",
    "i̇",
    "incomprehensible",
    "incomprehensibles",
    "sixteen_letters_",
    "the\x00",
    "\x7f",
]


def check(tokenizer: WordTokenizer, lines: list[str]) -> None:
    ids, lengths = tokenizer.encode_flat(lines)
    expected = tokenizer.encode_batch(lines)
    assert lengths.tolist() == [len(line) for line in expected]
    assert ids.tolist() == [number for line in expected for number in line]
    assert ids.dtype == np.int32


@pytest.mark.parametrize("lowercase", [False, True])
def test_odd_lines_alone_and_together(lowercase: bool) -> None:
    tokenizer = WordTokenizer(Vocabulary(WORDS), lowercase=lowercase)
    for line in [*ODD, *OTHER]:
        check(tokenizer, [line])
        check(tokenizer, ["the cat", line, "sat"])
    check(tokenizer, ODD)
    check(tokenizer, OTHER)
    check(tokenizer, [])


@pytest.mark.parametrize("size", [1, 2, 31, 4999])
def test_vocabularies_of_all_sizes(size: int) -> None:
    """Words of one to twenty letters out of two, so that many share a beginning and some are
    unknown.
    """
    generator = numpy_generator("words", size)
    drawn = [
        "".join(generator.choice(["a", "b"], generator.integers(1, 21))) for _ in range(2 * size)
    ]
    tokenizer = WordTokenizer(Vocabulary(list(dict.fromkeys(drawn))[:size]), lowercase=False)
    check(tokenizer, [" ".join(generator.choice(drawn, 7)) for _ in range(61)])


def test_a_full_neighbourhood_is_searched_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """All words fall into one slot: still each is found, and strangers are not."""
    monkeypatch.setattr("headwise.text.word_lookup._FACTOR", np.uint64(0))
    words = [f"w{number}" for number in range(53)]
    finder = WordFinder({word: number + 4 for number, word in enumerate(words)}, lowercase=False)
    ids, _ = finder.find([" ".join([*words, "w53", "x"])])
    assert ids.tolist() == [*range(4, 57), 3, 3]
