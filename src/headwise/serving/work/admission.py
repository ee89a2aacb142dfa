"""How much work is accepted, how long it will take, and whether more can be finished in time.

    work of a part    units of its kind: tokens × hypotheses of a search, tokens × words of an occlusion, … (`Part.work`, `Part.kind`)
    price of a kind   seconds a unit, as measured by the worker; its memory is halved with every 10 s of work and every 256 answers
    rank              arrival + 10 × the seconds a request is expected to take: the worker does the lowest rank first
    accepted          if what goes first and its own take at most 0.4 of the time left to it, and it pushes nobody behind it beyond that;
                      the second of a kind when the first was measured; what seems to take longer than that by itself, if next to nothing else is there: whether it can be done is seen by doing it

So short work overtakes long work, and long work is never starved: after a while nothing that
arrives has a lower rank. A queue that counts requests cannot tell a word from a hundred sentences
with a beam of eight: it accepted what it could not finish, and all of it was late together. What is
refused is told when to come back; what is accepted is finished. Tested: by hand-worked times, and
under load.
"""

import asyncio
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from headwise.serving.http.errors import Refusal
from headwise.serving.work.jobs import Part

FIRST_PRICE = 0.002
"""Before anything of a kind was measured."""
HALF_LIFE, HALF_ANSWERS = 10.0, 256
MAX_RISE, MIN_RISE_SECONDS = 10.0, 1.0
"""One answer is believed to be at most so many times dearer than the others, or so long: a process
that was stopped for a while is not slow."""
AGING = 10.0
SHARE = 0.4
"""Of the time left: sentences differ, and the machine may have other work in a moment."""
LITTLE = 0.05
"""Of the time left: so much other work does not keep out what seems to take too long by itself."""
LOOK_SECONDS = 0.05
"""How often a request that does not fit looks again."""


class Price:
    """Seconds a unit of one kind of work."""

    def __init__(self) -> None:
        self._seconds = self._units = 0.0

    @property
    def value(self) -> float:
        return self._seconds / self._units if self._units else FIRST_PRICE

    def learn(self, units: float, seconds: float) -> None:
        if units <= 0:
            return
        if self._units:
            seconds = min(seconds, max(MIN_RISE_SECONDS, MAX_RISE * self.value * units))
        left = 0.5 ** max(seconds / HALF_LIFE, 1 / HALF_ANSWERS)
        self._seconds = self._seconds * left + seconds
        self._units = self._units * left + units


class Load:
    """Of one worker that does one thing at a time.

    Requests come on the event loop; the worker's thread tells what is done.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._prices: dict[str, Price] = {}
        self._accepted: dict[Accepted, None] = {}
        self._since = clock()
        """So much time ago somebody began to be worked for who is not answered yet."""

    def price(self, kind: str) -> float:
        """Seconds a unit."""
        with self._lock:
            return self._prices[kind].value if kind in self._prices else FIRST_PRICE

    def learn(self, kind: str, work: float, seconds: float) -> None:
        with self._lock:
            self._since = min(self.clock(), self._since + seconds)
            self._prices.setdefault(kind, Price()).learn(work, seconds)

    @property
    def seconds(self) -> float:
        """Until what is accepted is done."""
        return sum(one.seconds for one in self._accepted)

    def take(self, parts: Sequence[Part], *, deadline: float = math.inf) -> "Accepted":
        """Without asking whether there is time for it."""
        accepted = Accepted(self, parts, deadline=deadline)
        if not self._accepted:
            self._since = self.clock()
        self._accepted[accepted] = None
        return accepted

    def forget(self, accepted: "Accepted") -> None:
        self._accepted.pop(accepted, None)
        if accepted.seconds:  # what was done for it is of no use to others
            self._since = self.clock()

    @asynccontextmanager
    async def accept(
        self, parts: Sequence[Part], *, deadline: float, until: float
    ) -> AsyncIterator["Accepted"]:
        """A share of the worker's time, or a refusal if there is none until then."""
        while (excess := self._excess(Accepted(self, parts, deadline=deadline))) > 0:
            if self.clock() >= until:
                raise _refuse(excess)
            await asyncio.sleep(LOOK_SECONDS)
        accepted = self.take(parts, deadline=deadline)
        try:
            yield accepted
        finally:
            accepted.end()

    def _excess(self, new: "Accepted") -> float:
        """Seconds of work too much for this one to be accepted."""
        if not self._accepted:
            return 0.0
        now, before, excess, is_behind = self.clock(), 0.0, 0.0, False
        done = min(now - self._since, max(one.seconds for one in self._accepted))
        if new.kind not in self._prices and any(one.kind == new.kind for one in self._accepted):
            return max(1.0, new.seconds)  # the first of a kind is measured before there is a second
        if not new.is_possible:
            return self.seconds - LITTLE * (new.deadline - now)
        for one in sorted((*self._accepted, new), key=lambda one: one.rank):
            before += one.seconds
            if one is new:
                excess = before - SHARE * (one.deadline - now)
                is_behind = True
            elif is_behind:
                excess = max(excess, before - done - SHARE * (one.deadline - now))
        return excess


class Accepted:
    """The work of one request; what was not done is given back at the end."""

    def __init__(self, load: Load, parts: Sequence[Part], *, deadline: float) -> None:
        """The parts of a request are of one kind."""
        self._load, self.deadline = load, deadline
        self.kind = parts[0].kind if parts else ""
        self._left = sum(part.work for part in parts)
        self._most = SHARE * (deadline - load.clock())
        self.is_possible = self._left * load.price(self.kind) <= self._most
        self.rank = load.clock() + AGING * self.seconds

    @property
    def seconds(self) -> float:
        """Until what is left of it is done, if it is done alone; never more than is accepted at
        all.
        """
        return min(self._most, self._left * self._load.price(self.kind))

    def finish(self, part: Part, seconds: float) -> None:
        self._left = max(0, self._left - part.work)
        self._load.learn(self.kind, part.work, seconds)

    def end(self) -> None:
        self._load.forget(self)


def _refuse(excess: float) -> Refusal:
    wait = min(60, max(1, math.ceil(excess)))
    return Refusal(
        503,
        "busy",
        en=(
            f"there is more work than can be finished in time; come back in {wait} s, or send "
            "fewer and shorter texts"
        ),
        zh=f"积压的工作已无法按时完成；请 {wait} 秒后再来，或减少、缩短文本",
        retry_after=wait,
    )
