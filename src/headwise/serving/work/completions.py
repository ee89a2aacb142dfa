"""Tells the event loop which jobs the worker threads have finished, in groups, a few at a turn.

A batch finishes up to 64 jobs at once. Waking the loop for each would cost a system call each, and
writing 64 replies in one turn of the loop would stall all other clients. So a thread wakes the loop
only if no wake-up is pending, and the loop completes `PER_TURN` futures a turn. Tested: order,
turns, calls from many threads.
"""

import asyncio
from collections import deque
from contextlib import suppress

PER_TURN = 8


class Completions:
    """Futures of one event loop that are ready to be completed; any thread may add one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._ready: deque[asyncio.Future[None]] = deque()
        self._is_scheduled = False

    def notify(self, ended: "asyncio.Future[None]") -> None:
        """Have the loop complete a future. May be called from any thread."""
        self._ready.append(ended)
        if not self._is_scheduled:
            self._is_scheduled = True
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self.loop.call_soon_threadsafe(self._complete_some)

    def _complete_some(self) -> None:
        # Reset first: whatever is added from now on schedules another call.
        self._is_scheduled = False
        for _ in range(min(PER_TURN, len(self._ready))):
            complete(self._ready.popleft())
        if self._ready and not self._is_scheduled:
            self._is_scheduled = True
            self.loop.call_soon(self._complete_some)


def complete(ended: "asyncio.Future[None]") -> None:
    """Complete a future, unless something else has."""
    if not ended.done():
        ended.set_result(None)
