"""A job: what one request asks of one model, divided into parts, with one future for all results.

A part is the smallest unit of work: a sentence, or a function call. Parts with equal keys may be
computed in one batch, even if they belong to different requests. Only the worker delivers results;
any thread may cancel. Tested through `worker.py`.
"""

import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol


class JobAbandoned(Exception):  # noqa: N818 - no error: nobody waits for the result any more
    """Stops work that nobody waits for."""


class PartRunner(Protocol):
    """The worker that computes a part."""

    def charge_seconds(self) -> float:
        """The seconds of work that this answer took."""
        ...

    def run_urgent(self) -> None:
        """Called between two steps: more urgent parts are computed first."""
        ...


@dataclass(eq=False)
class JobPart:
    """One unit of work."""

    run: "Callable[[Sequence[JobPart]], Sequence[Any]]"
    """Computes this part together with others of the same key."""
    run_continuously: "Callable[[Sequence[JobPart], JoinMore], None] | None" = None
    """The same with continuous batching: later parts join between two steps. None: not possible."""
    argument: Any = None
    key: Hashable | None = None
    """Parts with equal keys may share a batch. None: computed alone."""
    num_tokens: int = 1
    """Source tokens, which limit the size of a batch."""
    cost: int = 1
    """Expected cost in units of its kind, e.g. tokens × hypotheses (`admission.py`)."""
    kind: str = ""
    """What a unit of cost is; the seconds per unit are learned for each kind."""
    job: "Job | None" = None
    index: int = 0
    """In its job."""
    worker: PartRunner | None = None
    """Set when the part starts."""

    @property
    def is_over(self) -> bool:
        return self.job is not None and self.job.is_over

    @property
    def is_answered(self) -> bool:
        return self.job is not None and self.job.has_answered(self)


def should_stop(parts: Sequence[JobPart]) -> bool:
    """Called between two steps of a computation: computes more urgent parts first, then tells
    whether nobody waits for these parts any more.
    """
    if parts[0].worker is not None:
        parts[0].worker.run_urgent()
    return all(part.is_over for part in parts)


JoinMore = Callable[[int], Sequence[JobPart]]
"""Given the number of parts in a continuous batch, returns parts that join it now."""

_NOTHING = object()


class Job:
    """The parts of a request and their results so far."""

    def __init__(
        self, parts: Sequence[JobPart], *, deadline: float, rank: float | None = None
    ) -> None:
        """`rank`: the lowest runs first (`admission.py`); by default the time of arrival."""
        self.parts: Sequence[JobPart] = parts
        self.deadline = deadline
        self.rank = time.monotonic() if rank is None else rank
        self.future: Future[list[Any]] = Future()
        self._results: list[Any] = [_NOTHING] * len(parts)
        self._left = len(parts)
        self._is_cancelled = False
        self.on_cancel: Callable[[], None] | None = None
        """Called if the job is cancelled before it is done."""
        self.on_answer: Callable[[JobPart, float], None] | None = None
        """Called with every finished part and the seconds of work it took."""
        for index, part in enumerate(parts):
            part.job, part.index = self, index
        if not parts:
            self.future.set_result([])

    @property
    def is_over(self) -> bool:
        """Nobody waits: cancelled, done, failed in another part, or past its deadline."""
        return self._is_cancelled or self.future.done() or time.monotonic() > self.deadline

    def cancel(self) -> None:
        """The client has left, or has its reply.

        The job drops its parts, which refer to it. Left to the garbage collector, the cycles of
        thousands of requests hold up the event loop for a tenth of a second.
        """
        self._is_cancelled = True
        if self.on_cancel is not None and not self.future.done():
            self.on_cancel()
        self.parts = ()

    def has_answered(self, part: JobPart) -> bool:
        return self._results[part.index] is not _NOTHING

    def deliver(self, part: JobPart, result: Any, *, seconds: float | None = None) -> None:
        """Store the result of a part; a second result of the same part is ignored.

        `seconds`: the work it took; by default the worker is asked.
        """
        if self._results[part.index] is not _NOTHING:
            return
        if seconds is None:
            seconds = 0.0 if part.worker is None else part.worker.charge_seconds()
        self._results[part.index] = result
        self._left -= 1
        if self.on_answer is not None:
            self.on_answer(part, seconds)
        if self._left == 0:
            with suppress(InvalidStateError):  # it may be cancelled at any moment
                self.future.set_result(self._results)

    def fail(self, error: BaseException) -> None:
        with suppress(InvalidStateError):
            self.future.set_exception(error)
