"""Encodes a text as word ids, counting words and building the vocabulary in the same pass.

Each new word gets the next id, so a line is encoded inside C (`map` over a dictionary that grows by
itself). Afterwards frequent words are renumbered by falling count. Rare words are removed from the
text, so that context windows reach across them as in word2vec's C code. The text takes four bytes a
word.

Tested against: collections.Counter and a list comprehension.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from headwise.errors import DataError

LATEST_WORDS = 2**31 - 1


@dataclass(frozen=True)
class WordStream:
    """Words by falling count, the text as their ids, and the ends of its sentences."""

    words: tuple[str, ...]
    counts: np.ndarray
    """How often each word occurs in the text."""
    ids: np.ndarray
    """The text as int32, without the words that are not kept."""
    ends: np.ndarray
    """The index after the last word of each sentence."""
    lone: float = 0.0
    """The share of sentences with a single word; near 1 for text that is not segmented into words.
    """

    def __len__(self) -> int:
        return len(self.ids)

    def sentences(self, start: int, stop: int) -> np.ndarray:
        """The sentence number of each of these words."""
        first, last = np.searchsorted(self.ends, (start, max(start, stop - 1)), side="right")
        edges = np.concatenate(([start], self.ends[first:last], [stop]))
        return np.repeat(np.arange(first, last + 1, dtype=np.int32), np.diff(edges))


def read_words(
    sentences: Iterable[Sequence[str]], *, min_count: int, max_words: int | None = None
) -> WordStream:
    """The stream of a text; an error if fewer than two words are kept."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    ids, lengths = array("i"), array("i")
    for sentence in sentences:
        ids.extend(map(numbers.__getitem__, sentence))
        lengths.append(len(sentence))
    seen = np.frombuffer(ids, dtype=np.int32) if ids else np.zeros(0, np.int32)
    lone = lengths.count(1) / max(1, len(lengths))
    counts = np.bincount(seen, minlength=len(numbers))
    words = list(numbers)
    order = sorted(
        (number for number in range(len(words)) if counts[number] >= min_count),
        key=lambda number: (-counts[number], words[number]),
    )[:max_words]
    if len(order) < 2:
        raise DataError(
            f"{len(order)} of {len(words):,} words were seen at least {min_count} times in "
            f"{len(seen):,} words of text; two are needed for one to stand near the other: give "
            "more text, or lower text.min_count",
            f"全文 {len(seen):,} 个词、{len(words):,} 种，其中出现至少 {min_count} 次的有 "
            f"{len(order)} 种；至少需要两种才有“邻近”可言：请提供更多文本，或降低 text.min_count",
        )
    renumbered = np.full(len(words), -1, dtype=np.int32)
    renumbered[order] = np.arange(len(order), dtype=np.int32)
    text = renumbered[seen]
    kept = text >= 0
    before = np.concatenate(([0], np.cumsum(kept)))
    ends = before[np.cumsum(np.frombuffer(lengths, dtype=np.int32), dtype=np.int64)]
    return WordStream(
        tuple(words[number] for number in order), counts[order], text[kept], ends, lone
    )


def in_words(lines: Iterable[str], *, lowercase: bool) -> Iterator[list[str]]:
    """Each line split at whitespace."""
    return (
        (line.lower().split() for line in lines) if lowercase else (line.split() for line in lines)
    )


def in_characters(lines: Iterable[str], *, lowercase: bool) -> Iterator[list[str]]:
    """Each line as characters without spaces, for Chinese text that is not segmented."""
    return (list("".join((line.lower() if lowercase else line).split())) for line in lines)
