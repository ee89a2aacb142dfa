"""How a worker's thread tells the event loop that answers are there: one call for many, and a few
at a time.

A batch answers up to 64 requests at once. Waking the loop for each is a system call for each, at
every one of which the threads pass Python's lock on; and 64 replies written in one turn of the loop
are a stall for everybody else. So whoever posts wakes the loop only if nobody has, and the loop
settles `PORTION` of them a turn. Tested: order, turns, posts from many threads.
"""

import asyncio
from collections import deque
from contextlib import suppress

PORTION = 8


class Mailbox:
    """Futures of one event loop, to be settled by it; anyone may post."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._posted: deque[asyncio.Future[None]] = deque()
        self._is_awake = False

    def post(self, ended: "asyncio.Future[None]") -> None:
        """From any thread."""
        self._posted.append(ended)
        if not self._is_awake:
            self._is_awake = True
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self.loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        # First: what is posted from here on wakes the loop again, if only to find nothing.
        self._is_awake = False
        for _ in range(min(PORTION, len(self._posted))):
            settle(self._posted.popleft())
        if self._posted and not self._is_awake:
            self._is_awake = True
            self.loop.call_soon(self._settle)


def settle(ended: "asyncio.Future[None]") -> None:
    """Whoever waits goes on, unless something else let it."""
    if not ended.done():
        ended.set_result(None)
