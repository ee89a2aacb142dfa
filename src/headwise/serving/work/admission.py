"""Admission control: estimates how long the accepted work will take, and whether more fits.

A request is divided into parts (`jobs.py`); a part is a sentence or a function call.

    cost of a part     in units of its kind: tokens × hypotheses of a search, tokens × words of an
                       occlusion, … (`JobPart.cost`, `JobPart.kind`)
    unit cost          seconds per unit, as measured; old measurements lose half their weight with
                       every 10 s of work and every 256 answers
    rank               arrival time + 10 × the expected seconds; the worker runs the lowest rank
                       first
    admitted           if the request and all work of lower rank take at most 0.4 of the time left,
                       and no admitted request of higher rank is delayed beyond that
    first of a kind    the second request of a kind is admitted when the first has been measured
    too long alone     a request whose own work seems to exceed the 0.4 is admitted when there is
                       hardly any other work, to find out by doing it

So short work overtakes long work, and long work is not starved: after a while nothing that arrives
has a lower rank. A limit on the number of requests would not do, because a request may be a word or
a hundred sentences with a beam of eight; with such a limit the server accepted work that it could
not finish in time. A refused request is told when to come back; an admitted one is finished.
Tested: by hand-worked times, and under load.
"""

import asyncio
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from headwise.serving.http.errors import Refusal
from headwise.serving.work.jobs import JobPart

DEFAULT_UNIT_COST = 0.002
"""Seconds per unit before anything of a kind was measured."""
HALF_LIFE, HALF_ANSWERS = 10.0, 256
MAX_RISE, MIN_RISE_SECONDS = 10.0, 1.0
"""One answer counts as at most this many times the usual cost, or this many seconds: a process that
was stopped for a while is not slow."""
AGING = 10.0
SHARE = 0.4
"""Of the time left: lengths of translations vary, and the machine may get other work."""
LITTLE = 0.05
"""Of the time left: this much other work does not keep out a request that seems to take too long by
itself."""
POLL_SECONDS = 0.05
"""How often a request that does not fit tries again."""


class UnitCost:
    """Seconds per unit of one kind of work, learned from answers."""

    def __init__(self) -> None:
        self._seconds = self._units = 0.0

    @property
    def value(self) -> float:
        return self._seconds / self._units if self._units else DEFAULT_UNIT_COST

    def learn(self, units: float, seconds: float) -> None:
        if units <= 0:
            return
        if self._units:
            seconds = min(seconds, max(MIN_RISE_SECONDS, MAX_RISE * self.value * units))
        left = 0.5 ** max(seconds / HALF_LIFE, 1 / HALF_ANSWERS)
        self._seconds = self._seconds * left + seconds
        self._units = self._units * left + units


class AdmissionControl:
    """The admitted work of one worker that does one thing at a time.

    Requests are admitted on the event loop; the worker's thread reports what is done.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._unit_costs: dict[str, UnitCost] = {}
        self._admitted: dict[AdmittedWork, None] = {}
        self._since = clock()
        """When the work for the oldest unanswered part began."""

    def unit_cost(self, kind: str) -> float:
        """Seconds per unit."""
        with self._lock:
            return self._unit_costs[kind].value if kind in self._unit_costs else DEFAULT_UNIT_COST

    def learn(self, kind: str, work: float, seconds: float) -> None:
        with self._lock:
            self._since = min(self.clock(), self._since + seconds)
            self._unit_costs.setdefault(kind, UnitCost()).learn(work, seconds)

    @property
    def seconds(self) -> float:
        """Expected time until all admitted work is done."""
        return sum(one.seconds for one in self._admitted)

    def reserve(self, parts: Sequence[JobPart], *, deadline: float = math.inf) -> "AdmittedWork":
        """Admit work without asking whether there is time for it."""
        admitted = AdmittedWork(self, parts, deadline=deadline)
        if not self._admitted:
            self._since = self.clock()
        self._admitted[admitted] = None
        return admitted

    def release(self, admitted: "AdmittedWork") -> None:
        self._admitted.pop(admitted, None)
        if admitted.seconds:  # the time already spent on it is lost
            self._since = self.clock()

    @asynccontextmanager
    async def admit(
        self, parts: Sequence[JobPart], *, deadline: float, until: float
    ) -> AsyncIterator["AdmittedWork"]:
        """Admit work, or refuse it if there is no time for it by `until`."""
        while (excess := self._excess(AdmittedWork(self, parts, deadline=deadline))) > 0:
            if self.clock() >= until:
                raise _refuse(excess)
            await asyncio.sleep(POLL_SECONDS)
        admitted = self.reserve(parts, deadline=deadline)
        try:
            yield admitted
        finally:
            admitted.end()

    def _excess(self, new: "AdmittedWork") -> float:
        """Seconds of work too many for this request to be admitted."""
        if not self._admitted:
            return 0.0
        now, before, excess, is_behind = self.clock(), 0.0, 0.0, False
        done = min(now - self._since, max(one.seconds for one in self._admitted))
        if new.kind not in self._unit_costs and any(one.kind == new.kind for one in self._admitted):
            return max(1.0, new.seconds)  # wait for the measurement of the first
        if not new.is_possible:
            return self.seconds - LITTLE * (new.deadline - now)
        for one in sorted((*self._admitted, new), key=lambda one: one.rank):
            before += one.seconds
            if one is new:
                excess = before - SHARE * (one.deadline - now)
                is_behind = True
            elif is_behind:
                excess = max(excess, before - done - SHARE * (one.deadline - now))
        return excess


class AdmittedWork:
    """The admitted work of one request; what was not done is given back at the end."""

    def __init__(
        self, admission: AdmissionControl, parts: Sequence[JobPart], *, deadline: float
    ) -> None:
        """All parts of a request are of one kind."""
        self._admission, self.deadline = admission, deadline
        self.kind = parts[0].kind if parts else ""
        self._left = sum(part.cost for part in parts)
        self._most = SHARE * (deadline - admission.clock())
        self.is_possible = self._left * admission.unit_cost(self.kind) <= self._most
        self.rank = admission.clock() + AGING * self.seconds

    @property
    def seconds(self) -> float:
        """Expected seconds of the remaining work by itself, at most the share of the time left."""
        return min(self._most, self._left * self._admission.unit_cost(self.kind))

    def finish(self, part: JobPart, seconds: float) -> None:
        self._left = max(0, self._left - part.cost)
        self._admission.learn(self.kind, part.cost, seconds)

    def end(self) -> None:
        self._admission.release(self)


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
