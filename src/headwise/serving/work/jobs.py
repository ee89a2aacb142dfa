"""What one request asks of one model: parts that are answered in any order, and one future for the
whole.

A part is the least a worker does at once: a sentence, or a function to call. Parts with equal keys,
of whatever requests, may be answered together. Only the worker's thread delivers; anyone may leave.
Tested through `worker.py`.
"""

import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol


class Abandoned(Exception):  # noqa: N818 - nobody waits for the answer any more: no error
    """Ends work that nobody waits for."""


class AtWork(Protocol):
    """Who computes a part, from when it begins."""

    def lap(self) -> float:
        """Seconds of work that this answer took."""
        ...

    def pause(self) -> None:
        """Between two steps: what goes first is done here."""
        ...


@dataclass(eq=False)
class Part:
    """One piece of work."""

    run: "Callable[[Sequence[Part]], Sequence[Any]]"
    """Answers the part together with others of the same key."""
    flow: "Callable[[Sequence[Part], More], None] | None" = None
    """Does the same and, between two steps, takes in those that come meanwhile; None: it cannot."""
    argument: Any = None
    key: Hashable | None = None
    """None: alone."""
    weight: int = 1
    """Source tokens: what a batch is bounded by."""
    work: int = 1
    """Units of its kind, e.g.

    tokens × hypotheses: what a worker's time is divided by (`load.py`)."""
    kind: str = ""
    """What a unit is, so that its price can be learnt."""
    order: "Order | None" = None
    place: int = 0
    worker: AtWork | None = None
    """From when it begins."""

    @property
    def is_over(self) -> bool:
        return self.order is not None and self.order.is_over

    @property
    def is_answered(self) -> bool:
        return self.order is not None and self.order.has_answered(self)


def nobody_waits(parts: Sequence[Part]) -> bool:
    """Asked between two steps, by whoever computes the parts. What goes first is done meanwhile."""
    if parts[0].worker is not None:
        parts[0].worker.pause()
    return all(part.is_over for part in parts)


More = Callable[[int], Sequence[Part]]
"""Given how many are under way, those that join them now."""

_NOTHING = object()


class Order:
    """The parts of a request, in order, and how far they are."""

    def __init__(
        self, parts: Sequence[Part], *, deadline: float, rank: float | None = None
    ) -> None:
        """`rank`: the lowest goes first (`load.py`); as it comes, unless told."""
        self.parts, self.deadline = parts, deadline
        self.rank = time.monotonic() if rank is None else rank
        self.future: Future[list[Any]] = Future()
        self._results: list[Any] = [_NOTHING] * len(parts)
        self._left = len(parts)
        self._is_gone = False
        self.on_leave: Callable[[], None] | None = None
        """Called if the client leaves before the answer."""
        self.on_answer: Callable[[Part, float], None] | None = None
        """Called with every part that is answered and the seconds of work it took."""
        for place, part in enumerate(parts):
            part.order, part.place = self, place
        if not parts:
            self.future.set_result([])

    @property
    def is_over(self) -> bool:
        """Nobody waits any more: the client left, another part failed, or it is too late."""
        return self._is_gone or self.future.done() or time.monotonic() > self.deadline

    def leave(self) -> None:
        """The client is gone."""
        self._is_gone = True
        if self.on_leave is not None and not self.future.done():
            self.on_leave()

    def has_answered(self, part: Part) -> bool:
        return self._results[part.place] is not _NOTHING

    def deliver(self, part: Part, result: Any, *, seconds: float | None = None) -> None:
        """Once; whoever was answered before the rest of a batch is not answered again with it.
        `seconds` as its worker measured them.
        """
        if self._results[part.place] is not _NOTHING:
            return
        if seconds is None:
            seconds = 0.0 if part.worker is None else part.worker.lap()
        self._results[part.place] = result
        self._left -= 1
        if self.on_answer is not None:
            self.on_answer(part, seconds)
        if self._left == 0:
            with suppress(InvalidStateError):  # the client may leave at any moment
                self.future.set_result(self._results)

    def fail(self, error: BaseException) -> None:
        with suppress(InvalidStateError):
            self.future.set_exception(error)
