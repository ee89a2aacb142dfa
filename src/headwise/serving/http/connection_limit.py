"""Limits the number of open connections, and chooses which one is dropped if there are too many.

    waits for its client    the head or the body of a request is not complete. Such connections are
                            dropped, first those that never got a reply, the longest wait first
    is being answered       never dropped

Both groups are kept in order of waiting, so finding the longest wait takes constant time even if an
attacker opens many connections. Tested: by hand, and through `connection.py` with real sockets.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol

MIN_WAIT_SECONDS = 1.0
"""A connection that has waited for its client no longer than this is not dropped."""
MAX_PER_CLIENT = 128
"""Connections of one other machine."""
MAX_SURPLUS = 16
"""Connections above the limit that are accepted only to be told 503; more wait in the backlog of
the listening socket."""


class LimitedConnection(Protocol):
    """A connection as the limit sees it."""

    address: str | None
    """Of the other machine; None: this machine."""

    def drop(self) -> None: ...


class ConnectionLimit:
    """Counts the connections of one server."""

    def __init__(self, max_connections: int, *, clock: Callable[[], float]) -> None:
        self.max_connections, self._clock = max_connections, clock
        self._new: dict[LimitedConnection, float] = {}
        """Waiting for their first request, and since when."""
        self._idle: dict[LimitedConnection, float] = {}
        """Waiting for another request, and since when."""
        self._all: set[LimitedConnection] = set()
        self._per_client: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._all)

    @property
    def num_free(self) -> int:
        """How many more may be accepted, those told 503 included."""
        return self.max_connections + MAX_SURPLUS - len(self._all)

    def has_room(self) -> bool:
        """Whether one more may be accepted; a waiting connection is dropped for it if need be."""
        return self.num_free > 0 or self._drop_longest()

    def add(self, connection: LimitedConnection) -> bool:
        """Count a new connection; False: it is above the limit and must be told 503.

        One too many of the same machine is dropped at once.
        """
        has_room = is_tolerated = True
        address = connection.address
        if address is not None:
            if self._per_client[address] >= MAX_PER_CLIENT:
                has_room = is_tolerated = self._drop_longest(lambda one: one.address == address)
            self._per_client[address] += 1
        if has_room and len(self._all) >= self.max_connections:
            has_room = self._drop_longest()
        self._all.add(connection)
        self._new[connection] = self._clock()
        if not is_tolerated:
            self.remove(connection)
            connection.drop()
        return has_room

    def remove(self, connection: LimitedConnection) -> None:
        if connection in self._all:
            self._all.discard(connection)
            self.mark_busy(connection)
            if connection.address is not None:
                self._per_client[connection.address] -= 1
                if not self._per_client[connection.address]:
                    del self._per_client[connection.address]

    def mark_busy(self, connection: LimitedConnection) -> None:
        """Its request is complete and being answered."""
        self._new.pop(connection, None)
        self._idle.pop(connection, None)

    def mark_idle(self, connection: LimitedConnection) -> None:
        """It got its reply and may send another request."""
        if connection in self._all:
            self.mark_busy(connection)
            self._idle[connection] = self._clock()

    def _drop_longest(self, fits: Callable[[LimitedConnection], bool] | None = None) -> bool:
        """Drop the connection that has waited for its client longest; False: there is none."""
        until = self._clock() - MIN_WAIT_SECONDS
        for waiting in (self._new, self._idle):
            among: Iterable[LimitedConnection] = waiting if fits is None else filter(fits, waiting)
            longest = next(iter(among), None)
            if longest is not None and waiting[longest] <= until:
                self.remove(longest)
                longest.drop()
                return True
        return False
