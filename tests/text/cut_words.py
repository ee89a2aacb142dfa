"""A tokenizer of each kind, and words to be cut by its pieces, for tests of sub-word
regularisation."""

from functools import cache

import numpy as np

from headwise.text.piece_table import PieceTable
from headwise.text.sentencepiece_tokenizer import PieceTokenizer, learn_pieces

from .corpus import CHINESE, ENGLISH


@cache
def small_tokenizer(algorithm: str) -> PieceTokenizer:
    lines = [" ".join(ENGLISH[i::17]) + " " + "".join(CHINESE[i::5]) for i in range(17)] * 3
    return learn_pieces(
        [f"{line} {number}" for number, line in enumerate(lines)],
        algorithm=algorithm,
        size=480,
        byte_fallback=True,
        coverage=1.0,
        normalization="identity",
    )


def in_characters(table: PieceTable, words: list[str]) -> np.ndarray:
    """Words of one length as numbers of the alphabet."""
    return np.array([[table.alphabet[character] for character in word] for word in words])


def by_length(words: list[str]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for word in words:
        found.setdefault(len(word), []).append(word)
    return found


def as_texts(table: PieceTable, cut: tuple[np.ndarray, np.ndarray]) -> list[tuple[str, ...]]:
    return [
        tuple(table.texts[number] for number in row[:count])
        for row, count in zip(cut[0].tolist(), cut[1].tolist(), strict=True)
    ]


def seeds(count: int, first: int = 0) -> np.ndarray:
    return np.arange(first, first + count, dtype=np.uint64)
