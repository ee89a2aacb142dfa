"""Counts the n-grams that translations share with their references, for thousands at once.

An n-gram of a reference is its first n - 1 words, which are an n-gram of their own and have a
number, and one word more. So a position of a translation goes on to order n only if it has matched
up to order n - 1, and the search for it is one look into a sorted table of pairs:

    (number of the (n-1)-gram in its reference, next word) → number of the n-gram

Each n-gram counts as often as the reference has it, at most. Words are numbered once: sacreBLEU's
tokenizer for Western languages works on what stands between two spaces, whatever stands beside, so
the words of each such piece are kept.
Tested through sentence BLEU against sacreBLEU, and pieces against whole sentences.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Int

MAX_KEPT = 1 << 18
"""Pieces of text whose words are kept; then they are forgotten and numbered anew."""

Ragged = tuple[Int[np.ndarray, " word"], Int[np.ndarray, " text"]]
"""The words of all texts one after the other, and how many each has."""


class NumberedWords:
    """Numbers the words of texts."""

    def __init__(self, tokenize: Callable[[str], str], *, by_pieces: bool) -> None:
        """`by_pieces`: the words of a text are those of its pieces between spaces."""
        self._tokenize, self._by_pieces = tokenize, by_pieces
        self._numbers: dict[str, int] = {}
        self._kept: dict[str, list[int]] = {}

    def number(self, texts: Sequence[str]) -> Ragged:
        """Numbers are comparable within a call, which may hold both sides."""
        if len(self._kept) > MAX_KEPT or len(self._numbers) > MAX_KEPT:
            self._kept, self._numbers = {}, {}
        rows = [self._read(text) for text in texts]
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        flat = np.fromiter(
            (word for row in rows for word in row), dtype=np.int64, count=int(lengths.sum())
        )
        return flat, lengths

    def _read(self, text: str) -> list[int]:
        if not self._by_pieces or "\n" in text:
            return self._split(text)
        found: list[int] = []
        kept = self._kept
        for piece in text.split():
            words = kept.get(piece)
            if words is None:
                words = kept[piece] = self._split(piece)
            found += words
        return found

    def _split(self, text: str) -> list[int]:
        numbers = self._numbers
        return [numbers.setdefault(word, len(numbers)) for word in self._tokenize(text).split()]


def count_matches(
    translations: Ragged,
    references: Ragged,
    reference: Int[np.ndarray, " translation"],
    *,
    max_order: int,
) -> Int[np.ndarray, "translation order"]:
    """Matches of each order; `reference` says which of the references a translation has."""
    size = 1 + max((int(words.max(initial=0)) for words, _ in (translations, references)))
    found = np.zeros((len(reference), max_order), dtype=np.int64)
    ours, theirs = _Positions(translations, reference), _Positions(references)
    for order in range(1, max_order + 1):
        table, state, available = np.unique(
            theirs.keys(order, size), return_inverse=True, return_counts=True
        )
        if not len(table):
            break
        keys = ours.keys(order, size)
        place = np.minimum(np.searchsorted(table, keys), len(table) - 1)
        ours = ours.go_on(table[place] == keys, place)
        both, counts = np.unique(ours.text * len(table) + ours.state, return_counts=True)
        shared = np.minimum(counts, available[both % len(table)])
        found[:, order - 1] = np.bincount(
            both // len(table), weights=shared, minlength=len(reference)
        )
        theirs = theirs.go_on(np.ones(len(state), dtype=bool), state)
        ours, theirs = ours.with_room(order), theirs.with_room(order)
    return found


class _Positions:
    """Where n-grams begin: the text, and the number of the n-gram there among those of the
    references (of order 0: the number of the reference)."""

    def __init__(self, texts: Ragged, reference: np.ndarray | None = None) -> None:
        self.words, lengths = texts
        self.ends = lengths.cumsum()
        self.text = np.repeat(np.arange(len(lengths)), lengths)
        self.at = np.arange(len(self.words))
        self.state = self.text if reference is None else reference[self.text]

    def keys(self, order: int, size: int) -> np.ndarray:
        return self.state * size + self.words[self.at + order - 1]

    def go_on(self, kept: np.ndarray, state: np.ndarray) -> "_Positions":
        """Only these, whose n-grams have these numbers now."""
        new = object.__new__(_Positions)
        new.words, new.ends = self.words, self.ends
        new.text, new.at, new.state = self.text[kept], self.at[kept], state[kept]
        return new

    def with_room(self, order: int) -> "_Positions":
        """Only those after whose n-gram a word follows in the same text."""
        return self.go_on(self.at + order < self.ends[self.text], self.state)
