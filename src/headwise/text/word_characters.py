"""The letters of a word as numbers, for models that read words letter by letter: no word is unknown
to them.

A letter is a byte of UTF-8, so that 256 numbers spell every word of every language (Peters et al.
2018 do the same). A word stands between two marks, which tell a filter that looks at three letters
where -ing is an ending; words longer than the row lose their end.

    "cat"  ->  begin c a t end 0 0 0 …          0: filling

The beginning and the end of a sentence are words of one sign of their own. Tested against: the list
above written out.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

NUM_LETTERS = 24
"""Numbers of a word, both marks included."""
BEGIN, END, FIRST_BYTE = 1, 2, 3
SENTENCE_BEGIN, SENTENCE_END = FIRST_BYTE + 256, FIRST_BYTE + 257
NUM_SIGNS = FIRST_BYTE + 258


def spell(signs: Sequence[int]) -> tuple[int, ...]:
    """Signs between the marks of a word, filled up with 0."""
    row = (BEGIN, *signs[: NUM_LETTERS - 2], END)
    return row + (0,) * (NUM_LETTERS - len(row))


BEGIN_WORD, END_WORD = spell((SENTENCE_BEGIN,)), spell((SENTENCE_END,))


@lru_cache(maxsize=1 << 16)
def letters_of(word: str) -> tuple[int, ...]:
    """NUM_LETTERS numbers of a word."""
    return spell([byte + FIRST_BYTE for byte in word.encode("utf-8", "surrogatepass")])


def spell_words(words: Iterable[str]) -> np.ndarray:
    """A row of letters for each word."""
    return np.array([letters_of(word) for word in words], dtype=np.int16).reshape(-1, NUM_LETTERS)
