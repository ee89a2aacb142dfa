"""A hash table that finds the indices of many keys at once, with array operations.

n-gram models need the index of a key among sorted keys. `numpy.searchsorted` gives it, but its
binary search among ten million keys waits for memory some twenty times. A hash table with twice as
many slots as keys waits once or twice. The first slot to look at is given by the highest bits of
the key times an odd constant (Knuth's multiplicative hashing); if it holds another key, the next
slot follows.

    slot₀ = (key · 0x9E3779B97F4A7C15 mod 2⁶⁴) >> (64 - bits),   slotᵢ = slot₀ + i

Tested against: numpy.searchsorted, on keys that are there, that are not, and that all fall into one
slot.
"""

import threading

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]
Ids = NDArray[np.int32]
Floats = NDArray[np.float32]
ABSENT = -1
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SMALL = 1 << 14
"""Fewer keys than this are found by binary search: building the table would cost more."""


class KeyIndex:
    """The index of each of some sorted, distinct keys, and two numbers of each.

    The table is built when it first pays. A key and its numbers are neighbours in memory, so that
    comparing the key also fetches the numbers.
    """

    def __init__(
        self, keys: Keys, first: Floats | None = None, second: Floats | None = None
    ) -> None:
        self.keys = keys
        self._numbers = (first, second)
        self._slots: Ids | None = None
        self._records = keys[:0]
        self._building = threading.Lock()
        self._bits = max(4, int(2 * max(1, len(keys)) - 1).bit_length())

    def find(self, wanted: Keys) -> Ids:
        """The index of every wanted key, -1 for absent ones."""
        if len(self.keys) == 0:
            return np.full(len(wanted), ABSENT, dtype=np.int32)
        if self._slots is None and len(wanted) < _SMALL:
            places = np.searchsorted(self.keys, wanted).astype(np.int32)
            places[places == len(self.keys)] = 0
            return np.where(self.keys[places] == wanted, places, np.int32(ABSENT))
        self.build()
        return self._probe(wanted)

    def look(self, wanted: Keys) -> tuple[Ids, Floats, Floats]:
        """Indices as by `find`, and the two numbers of each (undefined for absent keys)."""
        found = self.find(wanted)
        if self._slots is not None:
            pairs = self._records.take(2 * found.astype(np.int64) + 1, mode="wrap").view(np.float32)
            return found, pairs[0::2], pairs[1::2]
        if len(self.keys) == 0:
            nothing = np.zeros(len(wanted), dtype=np.float32)
            return found, nothing, nothing
        first, second = self._numbers
        assert first is not None
        assert second is not None
        return found, first.take(found, mode="wrap"), second.take(found, mode="wrap")

    def build(self) -> None:
        """The table, once, whichever thread comes first."""
        with self._building:
            if self._slots is None and len(self.keys) > 0:
                self._fill()

    def _fill(self) -> None:
        """Enter all keys: those that meet an empty slot take it, the others go on to the next."""
        slots = np.full(1 << self._bits, ABSENT, dtype=np.int32)
        mask = (1 << self._bits) - 1
        places = np.arange(len(self.keys), dtype=np.int32)
        at = self._first_slots(self.keys)
        while len(places):
            empty = slots[at] == ABSENT
            slots[at[empty]] = places[empty]  # of several keys for one slot, one gets it
            left = slots[at] != places
            places, at = places[left], (at[left] + 1) & mask
        self._records = np.zeros(2 * len(self.keys), dtype=np.int64)
        self._records[0::2] = self.keys
        for number, values in enumerate(self._numbers):
            if values is not None:
                self._records.view(np.float32)[2 + number :: 4] = values
        self._slots = slots

    def _first_slots(self, keys: Keys) -> Keys:
        hashed = keys.view(np.uint64) * _FACTOR
        hashed >>= np.uint64(64 - self._bits)
        return hashed.view(np.int64)

    def _probe(self, wanted: Keys) -> Ids:
        slots = self._slots
        assert slots is not None
        mask = (1 << self._bits) - 1
        at = self._first_slots(np.ascontiguousarray(wanted))
        found = slots.take(at)
        open_ = np.flatnonzero((self._keys_at(found) != wanted) & (found != ABSENT))
        while len(open_):  # another key is there: try the next slot
            step = at.take(open_)
            step += 1
            step &= mask
            at[open_] = step
            place = slots.take(step)
            found[open_] = place
            open_ = open_[(self._keys_at(place) != wanted.take(open_)) & (place != ABSENT)]
        return found

    def _keys_at(self, places: Ids) -> Keys:
        return self._records.take(2 * places.astype(np.int64), mode="wrap")
