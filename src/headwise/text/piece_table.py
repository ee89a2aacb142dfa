"""The pieces of a sentencepiece model as arrays, for cutting words in other ways than sentencepiece
does.

sentencepiece gives the best segmentation of a text. Sub-word regularisation draws others
(bpe_dropout.py, unigram_sampling.py), for many words at once, and needs for that what is in the
model: the text of each piece, its score, and its type. Of special entries, bytes and words that are
never cut (tags), the text is left empty: they take no part.

The model is a protobuf message: field 1, repeated, is a piece, which has a text (1), a score (2)
and a type (3).

    pieces       ▁the   re   e          number 0 of the alphabet: no character of a piece
    characters   ▁ t h e  r e  e        in one array, as numbers of the alphabet

Tested against: what sentencepiece says of each piece.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headwise.text.sentencepiece_limits import read_varint

_NORMAL = 1
_TEXT, _SCORE, _TYPE = 1, 2, 3


@dataclass(frozen=True)
class PieceTable:
    """The pieces by number; those that are not text are empty."""

    texts: tuple[str, ...]
    scores: np.ndarray
    """Of a unigram model logarithms of probabilities; of BPE, a piece with a higher score is made
    first."""

    @staticmethod
    def of(model: bytes) -> "PieceTable":
        """The pieces of a model that sentencepiece has read without complaint."""
        texts, scores = [], []
        for text, score, kind in _read_pieces(model):
            texts.append(text if kind == _NORMAL else "")
            scores.append(score)
        return PieceTable(tuple(texts), np.array(scores))

    @cached_property
    def alphabet(self) -> dict[str, int]:
        """The characters of the pieces, numbered from 1."""
        known = sorted(set("".join(self.texts)))
        return {character: number for number, character in enumerate(known, start=1)}

    @cached_property
    def lengths(self) -> np.ndarray:
        """Characters of each piece."""
        return np.array([len(text) for text in self.texts], dtype=np.int64)

    @cached_property
    def characters(self) -> np.ndarray:
        """Of all pieces, one after another."""
        numbers = (self.alphabet[character] for text in self.texts for character in text)
        return np.fromiter(numbers, dtype=np.int64, count=int(self.lengths.sum()))

    @cached_property
    def single(self) -> np.ndarray:
        """The piece that is this character of the alphabet alone; -1: there is none."""
        found = np.full(len(self.alphabet) + 1, -1, dtype=np.int64)
        for number, text in enumerate(self.texts):
            if len(text) == 1:
                found[self.alphabet[text]] = number
        return found


def _read_pieces(model: bytes) -> Iterator[tuple[str, float, int]]:
    for number, content in _fields(model):
        if number != 1 or not isinstance(content, bytes):
            continue
        text, score, kind = "", 0.0, _NORMAL
        for key, value in _fields(content):
            if key == _TEXT and isinstance(value, bytes):
                text = value.decode("utf-8", "replace")
            elif key == _SCORE and isinstance(value, bytes):
                (score,) = struct.unpack("<f", value)
            elif key == _TYPE and isinstance(value, int):
                kind = value
        yield text, score, kind


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The number and the content of each field of a protobuf message."""
    place = 0
    while place < len(message):
        key, place = read_varint(message, place)
        if key & 7 == 0:
            value, place = read_varint(message, place)
            yield key >> 3, value
            continue
        if key & 7 == 2:
            size, place = read_varint(message, place)
        else:
            size = 8 if key & 7 == 1 else 4
        yield key >> 3, message[place : place + size]
        place += size
