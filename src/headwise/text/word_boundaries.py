"""Finds where words begin and end in a sequence of tokens.

    ▁the | re | fore | ▁a    a space begins a word; pieces without one continue it
    我 | 们 | g | o | 去      in scripts without spaces each piece is a word

In Chinese, Japanese, Thai, Lao, Khmer and Burmese word boundaries need a dictionary; here a
character (or a learnt piece of several) counts as a word. Tested against: hand-made lines in both
kinds of script.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwise.text.tokenizer import WORD_START

UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3001-\u30ff\u3400-\u4dbf"
    r"\u4e00-\u9fff\uf900-\ufaff"
    r"\uff00-\uffef\U00020000-\U0003ffff"
)
"""Characters of scripts without spaces, with their punctuation: ranges for a regular expression."""
_UNSPACED = re.compile(f"[{UNSPACED}]")


@dataclass(frozen=True)
class WordBounds:
    """For each entry of a vocabulary: whether a word begins with it, and whether one always ends
    with it.
    """

    begins: np.ndarray
    ends: np.ndarray

    @staticmethod
    def of(pieces: Sequence[str]) -> "WordBounds":
        """From the pieces, which mark a space before them with ▁."""
        ends = np.array([is_unspaced(piece[-1:]) for piece in pieces])
        begins = np.array(
            [piece.startswith(WORD_START) or is_unspaced(piece[:1]) for piece in pieces]
        )
        return WordBounds(begins, ends)

    def __len__(self) -> int:
        return len(self.begins)

    def number_words(self, tokens: np.ndarray, is_word: np.ndarray) -> np.ndarray:
        """The number of the word of each token; a token outside of words gets its own number."""
        apart = self.ends[tokens] | ~is_word
        return np.cumsum(self.begins[tokens] | ~is_word | np.concatenate(([True], apart[:-1])))


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script without spaces between words, or to its
    punctuation.
    """
    return bool(_UNSPACED.match(character))
