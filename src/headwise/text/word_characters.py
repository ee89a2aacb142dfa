"""Spells a word as ids of its letters, for models that read words letter by letter: no word is
unknown.

A letter is a byte of UTF-8, so that 256 ids spell every word of every language (as in Peters et al.
2018). A word is enclosed by two marks, from which a convolution over three letters sees where -ing
is an ending; words longer than the row are cut.

    "cat"  ->  begin c a t end 0 0 0 …          0: padding

The beginning and the end of a sentence are words of one id of their own. Tested against: the list
above.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

NUM_LETTERS = 24
"""Ids of a word, with both marks."""
BEGIN, END, FIRST_BYTE = 1, 2, 3
SENTENCE_BEGIN, SENTENCE_END = FIRST_BYTE + 256, FIRST_BYTE + 257
NUM_SIGNS = FIRST_BYTE + 258


def spell(signs: Sequence[int]) -> tuple[int, ...]:
    """Ids between the marks of a word, padded with 0."""
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
