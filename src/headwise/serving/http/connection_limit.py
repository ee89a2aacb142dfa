"""How many connections a server has, and which one makes room when there are too many.

    who keeps the server waiting     for a head, or for the rest of a body: never answered yet (first to go), or answered before
    who is being answered            stays

Each list is in the order of waiting, so that finding the longest costs the same however many there
are: those who make trouble with connections make many. Tested by hand, and through `connections.py`
with real sockets.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol

PATIENCE_SECONDS = 1.0
"""A connection that has kept the server waiting no longer than this does not have to make room."""
MAX_OF_ONE = 128
"""Connections of one other machine."""
MAX_SURPLUS = 16
"""Connections beyond the bound that are told so at one time; more wait in line (`accepting.py`)."""


class Slot(Protocol):
    """A connection, as far as it is counted."""

    address: str | None
    """Of the other machine; None: this one."""

    def cut(self) -> None: ...


class Slots:
    """The connections of one server."""

    def __init__(self, most: int, *, clock: Callable[[], float]) -> None:
        self.most, self._clock = most, clock
        self._fresh: dict[Slot, float] = {}
        self._known: dict[Slot, float] = {}
        self._all: set[Slot] = set()
        self._of: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._all)

    @property
    def num_places(self) -> int:
        """For those who are answered and those who are told that they cannot be."""
        return self.most + MAX_SURPLUS - len(self._all)

    def has_place(self) -> bool:
        """Whether one more may be accepted; whoever has kept the server waiting makes room."""
        return self.num_places > 0 or self._cut_longest()

    def enter(self, slot: Slot) -> bool:
        """A new connection; False if it finds no room. It is counted all the same; one too many of
        its machine is cut off.
        """
        has_room = is_tolerated = True
        address = slot.address
        if address is not None:
            if self._of[address] >= MAX_OF_ONE:
                has_room = is_tolerated = self._cut_longest(lambda one: one.address == address)
            self._of[address] += 1
        if has_room and len(self._all) >= self.most:
            has_room = self._cut_longest()
        self._all.add(slot)
        self._fresh[slot] = self._clock()
        if not is_tolerated:
            self.leave(slot)
            slot.cut()
        return has_room

    def leave(self, slot: Slot) -> None:
        if slot in self._all:
            self._all.discard(slot)
            self.work(slot)
            if slot.address is not None:
                self._of[slot.address] -= 1
                if not self._of[slot.address]:
                    del self._of[slot.address]

    def work(self, slot: Slot) -> None:
        """Its request is whole: from here on the client waits."""
        self._fresh.pop(slot, None)
        self._known.pop(slot, None)

    def wait(self, slot: Slot) -> None:
        """It has been answered and may ask again."""
        if slot in self._all:
            self.work(slot)
            self._known[slot] = self._clock()

    def _cut_longest(self, fits: Callable[[Slot], bool] | None = None) -> bool:
        until = self._clock() - PATIENCE_SECONDS
        for waiting in (self._fresh, self._known):
            among: Iterable[Slot] = waiting if fits is None else filter(fits, waiting)
            longest = next(iter(among), None)
            if longest is not None and waiting[longest] <= until:
                self.leave(longest)
                longest.cut()
                return True
        return False
