"""Spells every token of a vocabulary as a sequence of symbols, its bytes with their role in words,
so that phrases can be found across tokens (decoding/rules/phrase_automaton.py).

A symbol is a byte of UTF-8 together with the role of its character in words:

    byte + 256 · kind        kind 0: not a word character · 1: a word character · 2: unknown

A byte piece above 127 is a part of a character, so its kind is unknown. All white space except the
space itself is one symbol, OTHER_SPACE. The escape before a digit (`tokenizer.py`) is one symbol,
ESCAPE_SYMBOL: the next symbol, possibly in another token, tells which character it stands for.
`decoding/rules/token_effects.py` uses this. Tested through the automata and against `decode` of
every tokenizer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from headwise.text.phrase_matching import is_space, is_word_character
from headwise.text.tokenizer import ESCAPE

NO_WORD, WORD, NOT_KNOWN = 0, 1, 2
NUM_SYMBOLS = 3 * 256
SPACE = 0x20
OTHER_SPACE = SPACE + 256 * NOT_KNOWN
ESCAPE_SYMBOL = 256 * NOT_KNOWN
"""Byte 0 occurs in no phrase."""


@dataclass(frozen=True)
class Spelling:
    """The symbols of all tokens in one array."""

    symbols: NDArray[np.int16]
    first: NDArray[np.int64]
    """Where the symbols of each token begin; one entry more than there are tokens."""

    @staticmethod
    def of(surfaces: Sequence[bytes]) -> "Spelling":
        """`surfaces` are what the tokens add to a text (`Tokenizer.surfaces`)."""
        known: dict[bytes, list[int]] = {}
        rows = [known.setdefault(surface, read_symbols(surface)) for surface in surfaces]
        symbols = np.array([symbol for row in rows for symbol in row], dtype=np.int16)
        return Spelling(symbols, np.cumsum([0, *map(len, rows)]))

    @cached_property
    def alphabet(self) -> frozenset[int]:
        """The symbols that occur."""
        return frozenset(np.unique(self.symbols).tolist())

    def __len__(self) -> int:
        return len(self.first) - 1


def read_symbols(surface: bytes) -> list[int]:
    try:
        text = surface.decode("utf-8")
    except UnicodeDecodeError:
        return [byte + 256 * NOT_KNOWN for byte in surface]
    return [symbol for character in text for symbol in _symbols_of(character)]


@lru_cache(1 << 16)
def _symbols_of(character: str) -> tuple[int, ...]:
    if is_space(character):
        return (SPACE if character == " " else OTHER_SPACE,)
    if character == ESCAPE:
        return (ESCAPE_SYMBOL,)
    kind = WORD if is_word_character(character) else NO_WORD
    return tuple(byte + 256 * kind for byte in character.encode("utf-8"))
