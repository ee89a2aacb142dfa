"""Groups pieces into words, and merges attention weights accordingly.

A word as a key receives the sum over its pieces, and a word as a query attends with the mean over
its pieces:

    W[u, v] = mean over i in u of  sum over j in v of  A[i, j]

A holds the weights between pieces i and j, W those between words u and v. The row sums of W equal
those of A. This is the convention of Clark et al., "What Does BERT Look At?" (arXiv:1906.04341). A
piece that begins a word starts with "▁"; Chinese and Japanese pieces, punctuation and special
tokens are words of their own.

Tested against: row sums kept (hypothesis), a hand-worked case, words spelled back from their
pieces.
"""

import re
import unicodedata
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwise.text.tokenizer import BOS, EOS, PAD, SPECIAL_PIECES, WORD_START

BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
WIDE_SCRIPT = re.compile(
    r"[\u2e80-\u2fdf\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
MARKS = (SPECIAL_PIECES[PAD], SPECIAL_PIECES[BOS], SPECIAL_PIECES[EOS])
JOINING = "'’-‐‑_"
"""Punctuation inside words (don't, well-known); all other punctuation is a word of its own."""


@dataclass(frozen=True)
class WordGroups:
    """The text of each word, and for each piece the number of its word."""

    text: tuple[str, ...]
    word_of_piece: tuple[int, ...]


def is_mark(piece: str) -> bool:
    """Whether a piece is padding or the beginning or end of a sentence. <unk> stands for a word and
    is none of these.
    """
    return piece in MARKS


def is_special(piece: str) -> bool:
    return piece in SPECIAL_PIECES


def is_wide(text: str) -> bool:
    """Whether a text contains full-width characters (CJK), which are written without spaces and may
    be set vertically.
    """
    return WIDE_SCRIPT.search(text) is not None


def is_punctuation(text: str) -> bool:
    """Whether a text consists of punctuation between words."""
    return bool(text) and all(
        unicodedata.category(mark).startswith("P") and mark not in JOINING for mark in text
    )


def _stands_alone(piece: str) -> bool:
    return is_special(piece) or is_wide(piece) or is_punctuation(piece.removeprefix(WORD_START))


def group_pieces(pieces: tuple[str, ...]) -> WordGroups:
    """Group the pieces of a sentence into words."""
    groups: list[list[str]] = []
    for piece in pieces:
        # A lone "▁" belongs to the piece after it, unless that is a special token such as </s>.
        waiting = bool(groups) and groups[-1] == [WORD_START] and not is_special(piece)
        opens = (
            not groups
            or piece.startswith(WORD_START)
            or _stands_alone(piece)
            or _stands_alone(groups[-1][-1])
        )
        if waiting or not opens:
            groups[-1].append(piece)
        else:
            groups.append([piece])
    numbers = tuple(number for number, group in enumerate(groups) for _ in group)
    return WordGroups(tuple(_spell(group) for group in groups), numbers)


def _spell(group: list[str]) -> str:
    """The word of a group of pieces; runs of byte pieces become the characters they encode."""
    joined = "".join(group)

    def decode(run: re.Match[str]) -> str:
        return bytes(int(value, 16) for value in BYTE_PIECE.findall(run.group())).decode(
            "utf-8", errors="replace"
        )

    text = re.sub(rf"(?:{BYTE_PIECE.pattern})+", decode, joined)
    return text.replace(WORD_START, "") or WORD_START


def merge_weights(
    weights: NDArray[np.floating], queries: WordGroups, keys: WordGroups
) -> NDArray[np.float64]:
    """[..., query, key] over pieces to the same over words: sum over keys, mean over queries."""
    rows = _membership(queries)
    columns = _membership(keys)
    merged: NDArray[np.float64] = (
        (rows / rows.sum(axis=1, keepdims=True)) @ weights.astype(np.float64) @ columns.T
    )
    return merged


def _membership(words: WordGroups) -> NDArray[np.float64]:
    """[word, piece]: 1 where the piece belongs to the word."""
    numbers = np.asarray(words.word_of_piece)
    return (np.arange(len(words.text))[:, None] == numbers[None, :]).astype(np.float64)
