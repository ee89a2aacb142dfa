"""How much work a model has accepted, how fast it does it, and whether more can be finished in time.

    work of a sentence    its tokens × the hypotheses that are kept (beam size, samples)
    rate                  work answered ÷ seconds in which there was any and its worker did not stand still, both halved every 3 s: the last seconds count most
    accepted              if (work accepted + its own) ÷ rate ≤ half of the time that is left to the request, or if nothing else is there

A queue that counts requests cannot tell a word from a hundred sentences with a beam of eight: it accepted what it could not
finish, and all of it was late together. What is refused is told when to come back; what is accepted is finished. Tested: by
hand-worked times, and under load.
"""

import asyncio
import math
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from headwise.serving.faults import Refusal

HALF_LIFE = 3.0
SHARE = 0.5
"""Of the time left: sentences differ, and the machine may have other work in a moment."""
MIN_BUSY_SECONDS = 0.02
"""Less is no measurement."""
LOOK_SECONDS = 0.05
"""How often a request that does not fit looks again."""


class Load:
    """Of one model. Requests come on the event loop; a worker's thread may tell what is done."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        is_moving: Callable[[], bool] = lambda: True,
    ) -> None:
        """`is_moving`: whether whoever does the work can do any; time in which it stands still tells nothing of its speed."""
        self._clock, self._is_moving = clock, is_moving
        self._lock = threading.Lock()
        self._accepted = 0.0
        self._done = self._busy = 0.0
        self._counted_until = clock()

    @property
    def rate(self) -> float | None:
        """Work a second; None before there was any."""
        with self._lock:
            self._count()
            return (
                self._done / self._busy if self._busy >= MIN_BUSY_SECONDS and self._done else None
            )

    @property
    def seconds(self) -> float:
        """Until what is accepted is done."""
        return self._accepted / (self.rate or math.inf)

    def seconds_with(self, work: float) -> float:
        return (self._accepted + work) / (self.rate or math.inf)

    def take(self, work: float) -> "Accepted":
        with self._lock:
            self._count()
            self._accepted += work
        return Accepted(self, work)

    def give_back(self, work: float, *, is_done: bool) -> None:
        with self._lock:
            self._count()
            self._accepted = max(0.0, self._accepted - work)
            if is_done:
                self._done += work

    @asynccontextmanager
    async def accept(
        self, work: float, *, deadline: float, patience: float
    ) -> AsyncIterator["Accepted"]:
        """A share of the model's time, or a refusal after so much patience."""
        until = self._clock() + patience
        while self._accepted and self.seconds_with(work) > SHARE * (deadline - self._clock()):
            if self._clock() >= until:
                raise self._refuse(work, SHARE * (deadline - self._clock()))
            await asyncio.sleep(LOOK_SECONDS)
        accepted = self.take(work)
        try:
            yield accepted
        finally:
            accepted.end()

    def _refuse(self, work: float, available: float) -> Refusal:
        wait = min(60, max(1, math.ceil(self.seconds_with(work) - available)))
        return Refusal(
            503,
            "busy",
            en=f"there is more work than can be finished in time; come back in {wait} s, or send fewer and shorter texts",
            zh=f"积压的工作已无法按时完成；请 {wait} 秒后再来，或减少、缩短文本",
            retry_after=wait,
        )

    def _count(self) -> None:
        """Time goes by; it counts if there was work and somebody to do it."""
        now = self._clock()
        seconds, self._counted_until = now - self._counted_until, now
        if self._accepted and self._is_moving():
            left = 0.5 ** (seconds / HALF_LIFE)
            self._done *= left
            self._busy = self._busy * left + seconds


class Accepted:
    """The work of one request; what was not done is given back at the end."""

    def __init__(self, load: Load, work: float) -> None:
        self._load, self._left = load, work

    def finish(self, work: float) -> None:
        work = min(work, self._left)
        self._left -= work
        self._load.give_back(work, is_done=True)

    def end(self) -> None:
        left, self._left = self._left, 0.0
        self._load.give_back(left, is_done=False)
