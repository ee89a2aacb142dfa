"""Counts n-grams: every run of 1, 2, … N words of a text, and how often it occurs.

An n-gram is named by the number of its first n-1 words (themselves an n-gram) and its last word, so
that one 64-bit number is its exact key whatever the order:

    key(w₁ … wₙ) = id(w₁ … wₙ₋₁) · vocabulary + wₙ

All keys of one order are made at once from the ids of the order below and sorted. Equal neighbours
are one n-gram, and its index among the distinct keys is its id. The continuations of a context are
therefore neighbours in the table. A sentence is `<s> w₁ … wₘ </s>`. No n-gram reaches over the
beginning of a sentence, and `<s>` itself is never predicted.

Tested against: a dictionary that counts tuples, on generated texts.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from headwise.errors import DataError
from headwise.text.tokenizer import BOS, EOS

Integers = NDArray[np.int64]
Ids = NDArray[np.int32]
ABSENT = -1


@dataclass(frozen=True)
class TokenStream:
    """Sentences one after the other, each `<s> words </s>`, and each token's position."""

    tokens: Ids
    places: Ids

    @staticmethod
    def of(tokens: Ids, lengths: Integers) -> "TokenStream":
        """From the words of all sentences in a row, and how many each sentence has."""
        ends = np.cumsum(lengths + 2)
        starts = ends - lengths - 2
        stream = np.empty(int(ends[-1]) if len(ends) else 0, dtype=np.int32)
        inside = np.ones(len(stream), dtype=bool)
        inside[starts] = inside[ends - 1] = False
        stream[inside] = tokens
        stream[starts], stream[ends - 1] = BOS, EOS
        places = np.arange(len(stream), dtype=np.int32) - np.repeat(starts, lengths + 2).astype(
            np.int32
        )
        return TokenStream(stream, places)

    @staticmethod
    def of_sentences(sentences: Sequence[Sequence[int]]) -> "TokenStream":
        lengths = np.fromiter(
            (len(sentence) for sentence in sentences), dtype=np.int64, count=len(sentences)
        )
        flat = chain.from_iterable(sentences)
        return TokenStream.of(np.fromiter(flat, dtype=np.int32, count=int(lengths.sum())), lengths)


@dataclass(frozen=True)
class NgramCounts:
    """The distinct n-grams of one order, sorted by key.

    `contexts` are the ids (one order below) of the first n-1 words, `suffixes` those of the last
    n-1; `at_start` marks n-grams that begin with `<s>`. Of order 1 there is one row for each entry
    of the vocabulary, seen or not.
    """

    keys: Integers
    counts: Integers
    contexts: Ids
    suffixes: Ids
    at_start: NDArray[np.bool_]


def count_ngrams(
    stream: TokenStream,
    *,
    order: int,
    vocabulary: int,
    progress: Callable[[int], None] | None = None,
) -> list[NgramCounts]:
    """The counts of order 1, 2, … `order`; `progress` is called with each order that is done."""
    tokens, places = stream.tokens, stream.places
    if len(tokens) == 0:
        raise DataError(
            "the text has no sentence to count; give a text with at least one line",
            "文本中没有可供计数的句子；请给出至少一行的文本",
        )
    ids = tokens
    tables = [_count_words(tokens, places, vocabulary)]
    for length in range(2, order + 1):
        if progress is not None:
            progress(length - 1)
        table, ids = _count_longer(tokens, places, ids, length, vocabulary)
        tables.append(table)
    if progress is not None:
        progress(order)
    return tables


def _count_words(tokens: Ids, places: Ids, vocabulary: int) -> NgramCounts:
    counts = np.bincount(tokens[places > 0], minlength=vocabulary).astype(np.int64)
    nothing = np.zeros(vocabulary, dtype=np.int32)
    return NgramCounts(
        np.arange(vocabulary, dtype=np.int64),
        counts,
        nothing,
        nothing,
        np.arange(vocabulary) == BOS,
    )


def _count_longer(
    tokens: Ids, places: Ids, ids: Ids, length: int, vocabulary: int
) -> tuple[NgramCounts, Ids]:
    """One order from the ids of the order below at every token; also the ids of this order."""
    ends = np.flatnonzero(places >= length - 1).astype(np.int32)
    keys = ids[ends - 1].astype(np.int64)
    keys *= vocabulary
    keys += tokens[ends]
    order = np.argsort(keys)
    keys = keys[order]
    is_new = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
    first = np.flatnonzero(is_new)
    ends = ends[order]
    found = np.full(len(tokens), ABSENT, dtype=np.int32)
    found[ends] = np.cumsum(is_new, dtype=np.int32) - 1
    examples = ends[first]
    table = NgramCounts(
        keys=keys[first],
        counts=np.diff(first, append=len(keys)),
        contexts=ids[examples - 1],
        suffixes=ids[examples],
        at_start=places[examples] == length - 1,
    )
    return table, found


def continuation_counts(tables: Iterable[NgramCounts]) -> list[Integers]:
    """Kneser and Ney's counts: the highest order by occurrences, others by words before.

    Nothing can stand before `<s>`: n-grams that begin with it keep how often they occur.
    """
    tables = list(tables)
    adjusted = []
    for table, longer in pairwise(tables):
        distinct = np.bincount(longer.suffixes, minlength=len(table.counts))
        adjusted.append(np.where(table.at_start, table.counts, distinct).astype(np.int64))
    return [*adjusted, tables[-1].counts]
