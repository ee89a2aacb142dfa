"""From pieces to words: people think in words, models look at pieces.

A word that is looked at receives what all its pieces receive (sum over keys); a word that looks
does so with each of its pieces (mean over queries):

    W[u, v] = mean over i in u of  sum over j in v of  A[i, j]

so the rows of W sum to what the rows of A sum to. This is the convention of Clark et al., "What
Does BERT Look At?" (arXiv:1906.04341). Pieces that open a word begin with "▁"; Chinese and Japanese
pieces, punctuation and special marks stand alone.

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
"""Marks that live inside words (don't, well-known); all other punctuation stands alone."""


@dataclass(frozen=True)
class WordGroups:
    """`text` of each word, and for each piece the number of the word it belongs to."""

    text: tuple[str, ...]
    word_of_piece: tuple[int, ...]


def is_mark(piece: str) -> bool:
    """Whether a piece is no word of the sentence: padding, beginning or end; <unk> stands for a
    word and is none.
    """
    return piece in MARKS


def is_special(piece: str) -> bool:
    return piece in SPECIAL_PIECES


def is_wide(text: str) -> bool:
    """Whether a text is written in characters as wide as high (CJK), which are set upright and need
    no spaces.
    """
    return WIDE_SCRIPT.search(text) is not None


def is_punctuation(text: str) -> bool:
    """Whether a text is nothing but marks that stand between words."""
    return bool(text) and all(
        unicodedata.category(mark).startswith("P") and mark not in JOINING for mark in text
    )


def _stands_alone(piece: str) -> bool:
    return is_special(piece) or is_wide(piece) or is_punctuation(piece.removeprefix(WORD_START))


def group_pieces(pieces: tuple[str, ...]) -> WordGroups:
    """Find the words of a sequence of pieces."""
    groups: list[list[str]] = []
    for piece in pieces:
        # A lone "▁" is a space that waits for its word, whatever comes next (except a mark such as
        # </s>).
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
    """The word a group of pieces spells; runs of byte pieces become the characters they encode."""
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
    """[..., query, key] over pieces -> the same over words: sum over keys, mean over queries."""
    rows = _membership(queries)
    columns = _membership(keys)
    merged: NDArray[np.float64] = (
        (rows / rows.sum(axis=1, keepdims=True)) @ weights.astype(np.float64) @ columns.T
    )
    return merged


def _membership(words: WordGroups) -> NDArray[np.float64]:
    """[word, piece]: one where the piece belongs to the word."""
    numbers = np.asarray(words.word_of_piece)
    return (np.arange(len(words.text))[:, None] == numbers[None, :]).astype(np.float64)
