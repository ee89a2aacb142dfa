"""`Tokenizer`: the interface of all tokenizers, and the ids of special tokens.

A tokenizer turns a line of text into ids below `size`, and ids into text. Ids 0 to 3 are padding,
beginning of sentence, end of sentence and unknown in every vocabulary, so that models, losses and
searches import them from here. Tokenizers do not add <s> or </s>: data and search do.

Law (tests/text): if `reversible` is true, `decode(encode(line)) == line` for every clean line
(`cleaning.py`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

PAD = 0
BOS = 1
EOS = 2
UNKNOWN = 3
NUM_SPECIAL = 4
SPECIAL_PIECES = ("<pad>", "<s>", "</s>", "<unk>")
WORD_START = "▁"
ESCAPE = "\uf8fe"
"""WORD_START or this character in the text itself is written as this character and a digit."""
UNKNOWN_TEXT = "⁇"
"""The text of an unknown token: a visible mark."""


def escape(text: str) -> str:
    """The text as pieces write it: a "▁" of its own is not one that stands for a space."""
    if WORD_START in text or ESCAPE in text:
        return text.replace(ESCAPE, ESCAPE + "0").replace(WORD_START, ESCAPE + "1")
    return text


def unescape(text: str) -> str:
    return (
        text.replace(ESCAPE + "1", WORD_START).replace(ESCAPE + "0", ESCAPE)
        if ESCAPE in text
        else text
    )


class Tokenizer(Protocol):
    """What other modules need of a tokenizer; `reversible` promises the law above."""

    @property
    def size(self) -> int: ...

    @property
    def reversible(self) -> bool: ...

    def encode(self, text: str) -> list[int]:
        """The ids of a line, without <s> and </s>."""
        ...

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of many lines, faster."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; padding, <s> and </s> are dropped, unknown becomes a visible mark."""
        ...

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """One string per id, for display; "▁" marks the start of a word."""
        ...

    def surfaces(self) -> list[bytes]:
        """What each id adds to a text, as UTF-8 bytes of its escaped form (`escape`): the escape
        and its digit may be in two ids.

        A text that begins with a space is decoded without it.
        """
        ...

    def __hash__(self) -> int:
        """Tokenizers are compared by identity, so that results can be cached for them."""
        ...

    def save(self, directory: Path) -> None:
        """Write the tokenizer's files into an existing directory."""
        ...


@runtime_checkable
class FlatTokenizer(Protocol):
    """A tokenizer that can also encode many lines into one array."""

    def encode_flat(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The ids of all lines in one array, and the number of ids of each line."""
        ...
