"""Word alignment from attention weights, and the alignment error rate (AER).

Annotators mark links between source and target words as sure S or possible P (S ⊆ P). For predicted
links A

    AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
    precision = |A ∩ P| / |A|      recall = |A ∩ S| / |S|

summed over the corpus (Och & Ney 2003); 0 is perfect. Links come from attention: for each target
word the source word with the greatest weight, after pieces were merged to words (weights are summed
over the pieces of a source word and averaged over those of a target word).

**Shifted or not.** A decoder has two rows for a target token y_t: the row that *predicts* it (its
input is y_{t-1}) and the row that *reads* it (its input is y_t, and it predicts y_{t+1}). The
predicting row attends to what y_t will translate before y_t is known; the reading row knows y_t.
Which of the two shows the alignment differs from layer to layer, so both are offered: unshifted
(predicts) and shifted (reads; SHIFT-ATT of Chen et al. 2020). Tested by hand-computed cases and by
laws (perfect links give 0; a wrong link never improves precision).
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from headwise.errors import DataError, UsageError

Links = frozenset[tuple[int, int]]
"""Pairs (source word, target word), counted from 0."""


@dataclass(frozen=True)
class GoldLinks:
    """The links of annotators; possible links include the sure ones."""

    sure: Links
    possible: Links


@dataclass(frozen=True)
class AlignmentScores:
    error_rate: float
    precision: float
    recall: float
    num_sentences: int

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def parse_links(line: str, *, first: int = 0) -> GoldLinks:
    """Links written as `0-0 1-2` (sure) and `1p3` or `1?3` (possible).

    `first` is the number of a sentence's first word.
    """
    sure, possible = set(), set()
    for item in line.split():
        for mark in "-p?":
            source, found, target = item.partition(mark)
            if (
                found
                and source.isdecimal()
                and target.isdecimal()
                and min(int(source), int(target)) >= first
            ):
                link = (int(source) - first, int(target) - first)
                possible.add(link)
                if mark == "-":
                    sure.add(link)
                break
        else:
            raise DataError(
                f"{item!r} is not a link; write source-target, e.g. 0-1 (sure) or 0p1 (possible), "
                f"counted from {first}",
                f"{item!r} 不是对齐链接；请写成 源-目标，如 0-1（确定）或 0p1（可能），从 {first} "
                "起数",
            )
    return GoldLinks(frozenset(sure), frozenset(possible))


def score_alignments(predicted: Sequence[Links], gold: Sequence[GoldLinks]) -> AlignmentScores:
    """Alignment error rate, precision and recall over a corpus."""
    if len(predicted) != len(gold):
        raise DataError(
            f"there are {len(predicted)} alignments but {len(gold)} gold ones; give one line for "
            "each sentence",
            f"有 {len(predicted)} 个对齐，却有 {len(gold)} 个标注；请逐句对应",
        )
    num_links = sum(len(links) for links in predicted)
    num_sure = sum(len(links.sure) for links in gold)
    in_sure = sum(len(links & right.sure) for links, right in zip(predicted, gold, strict=True))
    in_possible = sum(
        len(links & (right.possible | right.sure))
        for links, right in zip(predicted, gold, strict=True)
    )
    return AlignmentScores(
        error_rate=1 - (in_sure + in_possible) / (num_links + num_sure)
        if num_links + num_sure
        else 0.0,
        precision=in_possible / num_links if num_links else 1.0,
        recall=in_sure / num_sure if num_sure else 1.0,
        num_sentences=len(gold),
    )


def select_rows(
    attention: Float[ndarray, "step source"], num_target: int, *, shifted: bool
) -> Float[ndarray, "target source"]:
    """The row of each target token: step t gets token t-1 as input (first <s>) and predicts token
    t.
    """
    if attention.shape[0] < num_target + shifted:
        raise UsageError(
            f"{attention.shape[0]} rows of attention cannot cover {num_target} target "
            f"tokens{' shifted by one' if shifted else ''}; give the rows of all steps, end of "
            "sentence included",
            f"{attention.shape[0]} 行注意力不足以覆盖 {num_target} "
            f"个目标词元{'（移位一行）' if shifted else ''}；请给出所有步（含句末）的行",
        )
    return attention[shifted : num_target + shifted]


def group_pieces(pieces: Sequence[str]) -> tuple[int, ...]:
    """The word number of each piece; "▁" begins a word."""
    numbers: list[int] = []
    for piece in pieces:
        numbers.append(0 if not numbers else numbers[-1] + piece.startswith("▁"))
    return tuple(numbers)


def assign_pieces(pieces: Sequence[str], words: Sequence[str]) -> tuple[int, ...]:
    """The number of the word in which each piece begins, for given words (Chinese segmentation).

    Words and pieces spell the same text, apart from spaces; for character spans pass
    [text[start:end] for start, end in spans]. Offsets are counted in UTF-8 bytes, because a byte
    piece such as <0xE4> is a part of a character.
    """
    ends = np.cumsum([len("".join(word.split()).encode()) for word in words])
    sizes = [_count_bytes(piece) for piece in pieces]
    if sum(sizes) != (ends[-1] if len(words) else 0):
        raise DataError(
            f"the pieces spell {sum(sizes)} bytes, the words {ends[-1] if len(words) else 0}; "
            "give the same text twice",
            f"子词共 {sum(sizes)} 字节，而词共 {ends[-1] if len(words) else 0} 字节；"
            "两者应为同一文本",
        )
    starts = np.cumsum([0, *sizes[:-1]]) if sizes else np.zeros(0)
    # A piece of nothing but "▁" at the very end would begin after the last word: it belongs to it.
    return tuple(
        min(int(place), len(words) - 1) for place in np.searchsorted(ends, starts, side="right")
    )


def _count_bytes(piece: str) -> int:
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        return 1
    return len("".join(piece.replace("▁", " ").split()).encode())


def merge_pieces(
    attention: Float[ndarray, "target source"],
    source_words: Sequence[int],
    target_words: Sequence[int],
) -> Float[ndarray, "target_word source_word"]:
    """Attention between words: summed over the pieces of a source word, averaged over those of a
    target word.

    Columns beyond the source pieces (the end of the sentence) are left out.
    """
    to_source = np.zeros((len(source_words), max(source_words, default=-1) + 1))
    to_source[np.arange(len(source_words)), list(source_words)] = 1
    to_target = np.zeros((max(target_words, default=-1) + 1, len(target_words)))
    to_target[list(target_words), np.arange(len(target_words))] = 1
    share = to_target / np.maximum(to_target.sum(1, keepdims=True), 1)
    return share @ attention[: len(target_words), : len(source_words)] @ to_source


def link_greatest(attention: Float[ndarray, "target source"]) -> Links:
    """Link each target word to the source word with the greatest weight; rows of zeros have no
    link.
    """
    if not attention.size:
        return frozenset()
    best = attention.argmax(1)
    return frozenset(
        (int(source), target) for target, source in enumerate(best) if attention[target, source] > 0
    )


def symmetrize(
    forward: Links,
    backward: Links,
    *,
    method: Literal["intersection", "union", "grow_diagonal"] = "grow_diagonal",
) -> Links:
    """Combine the links of both directions, both given as (source, target).

    Growing starts from the links that both share and adds neighbours, also diagonal ones, that link
    a word without a link (Koehn et al. 2005).
    """
    if method == "intersection":
        return forward & backward
    if method == "union":
        return forward | backward
    links, waiting = set(forward & backward), sorted((forward | backward) - (forward & backward))
    grown = True
    while grown:
        grown = False
        for source, target in waiting:
            near = any((source + i, target + j) in links for i in (-1, 0, 1) for j in (-1, 0, 1))
            free = source not in {s for s, _ in links} or target not in {t for _, t in links}
            if near and free and (source, target) not in links:
                links.add((source, target))
                grown = True
    return frozenset(links)
