"""A worker: the queue of one model and the thread that computes its batches.

    batch     the part of the lowest rank, and parts with the same key, nearest in length, up to a
              number of sentences and of tokens (padding included)
    urgent    between two steps of a long search, parts of a much lower rank are computed
              (`admission.py` sets the ranks: short work first, with aging)

While a batch is computed, the next one gathers in the queue, so an idle server answers at once and
a busy one in full batches. With continuous batching (`search.py`) arriving parts join the running
batch, unless a full batch waits. Otherwise the thread lingers after a batch: clients send their
next request right after a reply, so if fewer parts wait than before the last batch, the thread
waits while more keep arriving. Without lingering, 64 clients were served in batches of 32, which
doubled the number of steps.

A batch that fails is computed again part by part, so that one request cannot spoil another. An
exception that kills the thread costs the running batch and nothing else. Tested: joining, order,
limits, cancelling, deadlines, failures, a killed thread.
"""

import logging
import threading
import time
from collections.abc import Sequence
from itertools import takewhile

from headwise.serving.work.admission import AdmissionControl
from headwise.serving.work.jobs import Job, JobAbandoned, JobPart

MAX_BATCH_SENTENCES = 64
MAX_BATCH_TOKENS = 8_192
MAX_CHOICE = 4 * MAX_BATCH_SENTENCES
"""A batch of similar lengths is chosen among this many of the oldest parts. Chosen among all, it
took some of every request, and all were late together."""
JOIN_SHARE = 0.25
"""Arriving parts join a continuous batch when they are at least this share of it: encoding few
sources costs nearly as much as encoding some more."""
LINGER_SECONDS = 0.1
"""The longest time the thread lingers; never longer than the last batch took."""
LINGER_GAP, LINGER_SHARE = 0.005, 0.05
"""Lingering ends after this many seconds, or this share of the last batch's time, without an
arrival."""
OVERTAKE_SECONDS = 1.0
"""How much lower a rank must be to interrupt a running batch: joining it, or waiting, costs less
than a separate search."""
MAX_NESTED = 3
"""How many searches may be interrupted at once, one inside the other."""
CLOSE_SECONDS = 10.0
"""How long `close` waits; a thread that hangs does not keep the process alive."""

logger = logging.getLogger(__name__)


class WorkerDied(RuntimeError):  # noqa: N818 - what happened, in the past tense
    """The worker was killed while it computed this job. It has been restarted."""


class Worker:
    """A queue and the thread that empties it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.num_batches = self.num_parts = self.num_restarts = 0
        self._waiting: list[JobPart] = []
        self._running: list[JobPart] = []
        self._changed = threading.Condition()
        self._is_closed = False
        self._expected, self._last_seconds = 0, 0.0
        self._uncharged_since, self._num_nested = time.monotonic(), 0
        self.admission = AdmissionControl()
        self._thread = threading.Thread(
            target=self._run_forever, name=f"headwise-{name}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def is_ready_for(self, parts: Sequence[JobPart]) -> bool:
        """Whether the worker can start these parts now."""
        return self.is_alive

    def admission_for(self, parts: Sequence[JobPart]) -> AdmissionControl:
        """The admission control of whatever computes these parts."""
        return self.admission

    @property
    def seconds(self) -> float:
        """Expected time until all admitted work is done."""
        return self.admission.seconds

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    def put(self, job: Job) -> None:
        """Add a job to the queue. The caller limits the length of the queue."""
        with self._changed:
            self._waiting.extend(job.parts)
            self._waiting.sort(key=rank_of)  # stable: equal ranks stay in order of arrival
            self._changed.notify()

    def close(self) -> None:
        """Refuse what waits, and let the running batch finish if it ends soon."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS)

    def _run_forever(self) -> None:
        while True:
            try:
                self._run_batches()
                return
            except BaseException as error:
                # The jobs must fail, or their clients wait until the deadline.
                self.num_restarts += 1
                logger.error(
                    "worker %s was killed by %s and has been restarted",
                    self.name,
                    type(error).__name__,
                )
                for part in self._running:
                    if part.job is not None:
                        part.job.fail(WorkerDied())
                self._running = []

    def _run_batches(self) -> None:
        while (batch := self._next_batch()) is not None:
            start = self._uncharged_since = time.monotonic()
            # Counted now: parts that finish before the batch ends may be followed by new ones of
            # the same clients, which must not be counted twice.
            self._expected = min(MAX_BATCH_SENTENCES, len(batch) + len(self._waiting))
            self._run_batch(batch)
            self._last_seconds = time.monotonic() - start
            self._running = []

    def _next_batch(self) -> list[JobPart] | None:
        with self._changed:
            while not self._waiting and not self._is_closed:
                self._wait_for_jobs(None)
            self._linger()
            self._waiting = [part for part in self._waiting if not part.is_over]
            if self._is_closed:
                for part in self._waiting:
                    if part.job is not None:
                        part.job.fail(WorkerDied())
                return None
            batch = choose_batch(self._waiting)
            self._start_batch(batch)
            return batch

    def _start_batch(self, batch: Sequence[JobPart]) -> None:
        chosen = set(map(id, batch))
        for part in batch:
            part.worker = self
        self._waiting = [part for part in self._waiting if id(part) not in chosen]
        self._running = [*(part for part in self._running if not part.is_answered), *batch]
        self.num_batches += bool(batch)
        self.num_parts += len(batch)

    def charge_seconds(self) -> float:
        """The time since the last answer, divided among the running parts: the first answer of a
        batch is not charged for all of it.
        """
        now = time.monotonic()
        spent = now - self._uncharged_since
        share = spent / max(
            1, sum(not part.is_answered and not part.is_over for part in self._running)
        )
        self._uncharged_since = now - (spent - share)
        return share

    def run_urgent(self) -> None:
        """Compute parts of a much lower rank than all running ones; then the interrupted batch
        continues.
        """
        while batch := self._next_urgent_batch(self._running):
            spent, outer = time.monotonic() - self._uncharged_since, self._running
            self._uncharged_since += spent
            self._num_nested += 1
            try:
                with self._changed:
                    self._running = []
                    self._start_batch(batch)
                self._run_batch(batch)
                self._running = []
            finally:
                self._num_nested -= 1
                self._running = [*outer, *self._running]
                self._uncharged_since = time.monotonic() - spent

    def _next_urgent_batch(self, others: Sequence[JobPart]) -> list[JobPart]:
        with self._changed:
            bound = (
                min((rank_of(part) for part in others if not part.is_answered), default=0.0)
                - OVERTAKE_SECONDS
            )
            if self._is_closed or self._num_nested >= MAX_NESTED:
                return []
            first = list(takewhile(lambda part: rank_of(part) < bound, self._waiting))
            return choose_batch([part for part in first if not part.is_over])

    def _wait_for_jobs(self, seconds: float | None) -> bool:
        """Wait until a job is put, at most this long; returns whether one was. The lock is held."""
        return self._changed.wait(seconds)

    def join_more(self, num_alive: int) -> list[JobPart]:
        """Parts that join the running continuous batch: those with its key, unless another has
        waited longer, if there are enough of them and too few for a batch of their own.
        """
        self.run_urgent()
        with self._changed:
            if self._is_closed or not 0 < len(self._waiting) < MAX_BATCH_SENTENCES:
                return []
            self._waiting = [part for part in self._waiting if not part.is_over]
            running = [part for part in self._running if not part.is_answered and not part.is_over]
            key = self._running[0].key
            if not self._waiting or self._waiting[0].key != key:
                return []
            batch = choose_batch(
                [part for part in self._waiting if part.key == key], beside=running
            )
            if len(batch) < JOIN_SHARE * num_alive:
                return []
            self._start_batch(batch)
            return batch

    def _linger(self) -> None:
        """Wait for the clients that the last batch answered. With continuous batching they join
        later.
        """
        if self._waiting and self._waiting[0].run_continuously is not None:
            return
        until = time.monotonic() + min(LINGER_SECONDS, self._last_seconds)
        while len(self._waiting) < self._expected and not self._is_closed:
            left = min(max(LINGER_GAP, LINGER_SHARE * self._last_seconds), until - time.monotonic())
            if left <= 0 or not self._wait_for_jobs(left):
                return

    def _run_batch(self, batch: list[JobPart]) -> None:
        if not batch:
            return
        # A full batch of similar lengths is cheaper than continuous batching. A second attempt,
        # part by part, is not continuous either.
        run_continuously = (
            batch[0].run_continuously
            if self._running == batch and len(batch) < MAX_BATCH_SENTENCES
            else None
        )
        try:
            if run_continuously is not None:
                run_continuously(batch, self.join_more)
                return
            results = batch[0].run(batch)
        except JobAbandoned:
            return
        except Exception as error:
            left = (
                [part for part in self._running if not part.is_answered]
                if run_continuously is not None
                else batch
            )
            if len(left) == 1 and left[0].job is not None:
                left[0].job.fail(error)
            for part in left if len(left) > 1 else ():
                self._run_batch([part])
            return
        for part, result in zip(batch, results, strict=True):
            if part.job is not None:
                part.job.deliver(part, result)


def rank_of(part: JobPart) -> float:
    """The lowest rank runs first."""
    return 0.0 if part.job is None else part.job.rank


def choose_batch(waiting: Sequence[JobPart], *, beside: Sequence[JobPart] = ()) -> list[JobPart]:
    """The first part, and parts with its key that are nearest to it in length, as many as fit
    together with those that run already (`beside`).
    """
    if not waiting:
        return []
    first = waiting[0]
    if first.key is None:
        return [first]
    others = [part for part in waiting if part.key == first.key][:MAX_CHOICE]
    if len(others) > MAX_BATCH_SENTENCES:
        others.sort(key=lambda part: abs(part.num_tokens - first.num_tokens))
    batch: list[JobPart] = []
    longest, num_beside = max((part.num_tokens for part in beside), default=0), len(beside)
    for part in others:
        width, count = max(longest, part.num_tokens), num_beside + len(batch) + 1
        if count > MAX_BATCH_SENTENCES or (count > 1 and width * count > MAX_BATCH_TOKENS):
            break
        batch.append(part)
        longest = width
    return batch
