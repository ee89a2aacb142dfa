"""Looks up the ids of all words of many lines at once, with words as 64-bit numbers.

Splitting a line and looking up each word in a dictionary takes 150 ns a word, nearly all of it for
creating a string. A word of at most 16 bytes is two 64-bit numbers, which can be read from the text
directly. A hash table with constants c₁ and c₂ finds them:

    low, high = the 16 bytes from the first of the word, with the bytes after the word cleared
    slot₀     = ((low ⊕ high·c₁) · c₂ mod 2⁶⁴) >> (64 - bits),   slotᵢ = slot₀ + i

The slots are tried until low and high match or the slot is empty, so that the result is exact.
Longer words, and lines with other than ASCII letters, use the dictionary. Tested against: that
dictionary, on words and lines of all kinds.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from headwise.text.tokenizer import UNKNOWN

Numbers = NDArray[np.uint64]
Ids = NDArray[np.int32]
Integers = NDArray[np.int64]
_HIGH, _FACTOR = np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x9E3779B97F4A7C15)
_BYTES = 16
_LOW_MASKS = np.array([(1 << 8 * min(size, 8)) - 1 for size in range(_BYTES + 1)], dtype=np.uint64)
_HIGH_MASKS = np.array(
    [(1 << 8 * max(size - 8, 0)) - 1 for size in range(_BYTES + 1)], dtype=np.uint64
)
_SPACE = 32
_LINES = 256
"""Lines processed at once: their words stay in the cache of the processor."""


class WordFinder:
    """Ids for the words of a vocabulary; other words are unknown."""

    def __init__(self, ids: Mapping[str, int], *, lowercase: bool) -> None:
        self._ids, self._lowercase = ids, lowercase
        short = [
            word for word in ids if 0 < len(word) <= _BYTES and word.isascii() and "\0" not in word
        ]
        joined = b"".join(word.encode("ascii").ljust(_BYTES, b"\0") for word in short)
        # One entry more than there are words, for what is not found; no word is all zeros.
        self._words = np.frombuffer(joined + bytes(_BYTES), dtype="<u8")
        self._numbers = np.array([*(ids[word] for word in short), UNKNOWN], dtype=np.int32)
        self._bits = max(4, (4 * len(short)).bit_length())
        self._slots = self._fill()

    def find(self, lines: Sequence[str]) -> tuple[Ids, Integers]:
        """The ids of the words of all lines in one array, and the number of words of each line."""
        text = " ".join(lines)
        found = self._find_bytes(text, lines) if text.isascii() else None
        return self._ask(lines) if found is None else found

    def _find_bytes(self, text: str, lines: Sequence[str]) -> tuple[Ids, Integers] | None:
        """Use 64-bit numbers; None if there are control characters that are not space."""
        data = np.frombuffer(f" {text}{' ' * _BYTES}".encode("ascii"), dtype=np.uint8)
        is_space = data <= _SPACE
        # Of the control characters `str.split` takes 9 to 13 and 28 to 31 for space.
        if (data < 9).any() or ((data > 13) & (data < 28)).any():
            return None
        if self._lowercase:
            data = data + (((data >= 65) & (data <= 90)).view(np.uint8) << 5)
        edges = np.flatnonzero(is_space[1:] != is_space[:-1])
        edges += 1
        starts, sizes = edges[0::2], edges[1::2] - edges[0::2]
        ids = self._look_up(data, starts, np.minimum(sizes, _BYTES))
        for place in np.flatnonzero(sizes > _BYTES).tolist():
            start = int(starts[place])
            word = data[start : start + int(sizes[place])].tobytes().decode("ascii")
            ids[place] = self._ids.get(word, UNKNOWN)
        ends = np.cumsum(np.fromiter(map(len, lines), dtype=np.int64, count=len(lines)) + 1)
        return ids, np.diff(np.searchsorted(starts, ends + 1), prepend=0)

    def _look_up(self, data: NDArray[np.uint8], starts: Integers, sizes: Integers) -> Ids:
        # Every byte is the first of eight: a view, of which only those at a word's start are read.
        eights: Numbers = np.ndarray(len(data) - 7, dtype="<u8", buffer=data, strides=(1,))
        low = eights.take(starts) & _LOW_MASKS.take(sizes)
        high = eights.take(starts + 8) & _HIGH_MASKS.take(sizes)
        mask, at = (1 << self._bits) - 1, self._first_slots(low, high)
        place = self._slots.take(at)
        open_ = np.flatnonzero(self._differs(place, low, high))
        while len(open_):  # another word sits there: look at the next slot
            step = (at.take(open_) + 1) & mask
            at[open_] = step
            there = self._slots.take(step)
            place[open_] = there
            open_ = open_[self._differs(there, low.take(open_), high.take(open_))]
        return self._numbers.take(place)

    def _differs(self, place: Ids, low: Numbers, high: Numbers) -> NDArray[np.bool_]:
        """Where a slot holds another word; an empty slot ends the search."""
        first = 2 * place.astype(np.int64)
        other = self._words.take(first) != low
        other |= self._words.take(first + 1) != high
        other &= place < len(self._numbers) - 1
        return other

    def _first_slots(self, low: Numbers, high: Numbers) -> Integers:
        hashed = (low ^ (high * _HIGH)) * _FACTOR
        hashed >>= np.uint64(64 - self._bits)
        return hashed.view(np.int64)

    def _fill(self) -> Ids:
        """Words at an empty slot take it, the others go on to the next."""
        empty = len(self._numbers) - 1
        slots = np.full(1 << self._bits, empty, dtype=np.int32)
        places = np.arange(empty, dtype=np.int32)
        at = self._first_slots(self._words[0:-2:2], self._words[1:-2:2])
        while len(places):
            free = slots[at] == empty
            slots[at[free]] = places[free]  # of several that want one slot, one gets it
            left = slots[at] != places
            places, at = places[left], (at[left] + 1) & ((1 << self._bits) - 1)
        return slots

    def _ask(self, lines: Sequence[str]) -> tuple[Ids, Integers]:
        """Use the dictionary."""
        ids, lengths = [], []
        for first in range(0, len(lines), _LINES):
            block = lines[first : first + _LINES]
            words = [line.lower().split() if self._lowercase else line.split() for line in block]
            sizes = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
            found = map(self._ids.get, chain.from_iterable(words), repeat(UNKNOWN))
            ids.append(np.fromiter(found, dtype=np.int32, count=int(sizes.sum())))
            lengths.append(sizes)
        return np.concatenate(ids), np.concatenate(lengths)
