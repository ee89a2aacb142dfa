"""What a tokenizer is: text to numbers and back.

A tokenizer turns a line of text into ids below `size` and ids into text again; ids 0 to 3 mean the same in every
vocabulary (padding, beginning, end, unknown), so models, losses and searches never ask a tokenizer for them.
Tokenizers add no beginning or end themselves: what a sequence looks like is the affair of the data and the search.

Law (tests/text): where `reversible` is true, `decode(encode(line)) == line` for every clean line (`cleaning.py`).
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
"""Where the text itself holds WORD_START or this character, pieces write this one and a digit."""
UNKNOWN_TEXT = "⁇"
"""What an unknown token becomes in decoded text: visible, so that nobody takes a hole for a translation."""


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
    """What data, tasks and pictures need of a tokenizer; `reversible` promises the law above."""

    @property
    def size(self) -> int: ...

    @property
    def reversible(self) -> bool: ...

    def encode(self, text: str) -> list[int]:
        """The ids of a line, without beginning and end."""
        ...

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of many lines, faster."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; padding, beginning and end are dropped, unknown becomes a visible mark."""
        ...

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """One string per id for people and pictures; "▁" marks the start of a word."""
        ...

    def surfaces(self) -> list[bytes]:
        """What each id adds to a text, as UTF-8 bytes of its escaped form (`escape`): the escape and its digit may be in two ids.

        A text that begins with a space is decoded without it.
        """
        ...

    def __hash__(self) -> int:
        """A tokenizer is the same as itself alone: what is made for it may be kept."""
        ...

    def save(self, directory: Path) -> None:
        """Write the tokenizer's files into an existing directory."""
        ...


@runtime_checkable
class FlatTokenizer(Protocol):
    """A tokenizer that can also write many lines into one array."""

    def encode_flat(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The ids of all lines in a row, and how many each line has."""
        ...
