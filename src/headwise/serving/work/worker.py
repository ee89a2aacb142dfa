"""One thread a model. It takes the part of the lowest rank, joins others of the same key to it, and
answers them together.

    batch = the first part + parts of equal key, nearest in length, up to `sentences` and `tokens` (padding counted)
    pause = between two steps of a long search, parts of a much lower rank are answered (`load.py` makes the ranks: short work first, with aging)

While a batch is computed the next one gathers in the queue by itself, so an idle server answers at
once and a busy one in full batches. A search that flows (`search.py`) takes in whoever comes while
it runs, unless a full batch waits. Of the others: clients that wait for their answers come back
right after them, so if fewer wait than were there a batch ago, the thread lingers while they keep
coming. Without that, 64 clients were answered in batches of 32: twice the steps. What fails
together is answered part by part, so that one request cannot spoil another's. Whatever kills the
thread costs the batch at hand and nothing else. Tested: joining, order, budget, leaving, deadlines,
failures, a killed thread.
"""

import logging
import threading
import time
from collections.abc import Sequence
from itertools import takewhile

from headwise.serving.work.admission import Load
from headwise.serving.work.jobs import Abandoned, Order, Part

MAX_BATCH_SENTENCES = 64
MAX_BATCH_TOKENS = 8_192
MAX_CHOICE = 4 * MAX_BATCH_SENTENCES
"""A batch of like lengths is chosen among the oldest so many: chosen among all, it took some of
every request, and all were late together."""
JOIN_SHARE = 0.25
"""Whoever comes joins a flow when they are this many of those under way: encoding few sources costs
nearly as much as encoding some."""
LINGER_SECONDS = 0.1
"""The thread lingers at most this long, and at most as long as the last batch took."""
LINGER_GAP, LINGER_SHARE = 0.005, 0.05
"""And only while they keep coming: so long, or so much of the last batch's time, without an arrival
ends it."""
OVERTAKE_SECONDS = 1.0
"""By so much a rank must be lower than of those at work: joining them, or waiting, costs less than
a search of one's own."""
MAX_NESTED = 3
"""Searches that wait for another in their midst."""
CLOSE_SECONDS = 10.0
"""A thread that is stuck is left behind; it does not keep the process alive."""

logger = logging.getLogger(__name__)


class WorkerDied(RuntimeError):  # noqa: N818 - what happened, in the past tense
    """The thread was killed while it worked on this; it is at work again."""


class Worker:
    """A queue and the thread that empties it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.num_batches = self.num_parts = self.num_restarts = 0
        self._waiting: list[Part] = []
        self._at_work: list[Part] = []
        self._changed = threading.Condition()
        self._is_closed = False
        self._expected, self._last_seconds = 0, 0.0
        self._lap_began, self._num_nested = time.monotonic(), 0
        self.load = Load()
        self._thread = threading.Thread(target=self._live, name=f"headwise-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def is_ready_for(self, parts: Sequence[Part]) -> bool:
        """Whether it can begin with them at this moment."""
        return self.is_alive

    def load_of(self, parts: Sequence[Part]) -> Load:
        """Of whoever is going to compute them."""
        return self.load

    @property
    def seconds(self) -> float:
        """Until what was accepted is done."""
        return self.load.seconds

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    def put(self, order: Order) -> None:
        """Into the queue; its length is bounded by whoever calls."""
        with self._changed:
            self._waiting.extend(order.parts)
            self._waiting.sort(key=rank_of)  # it stays as it came where ranks are equal
            self._changed.notify()

    def close(self) -> None:
        """What waits is refused, what is at work is finished, if it ends soon."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS)

    def _live(self) -> None:
        while True:
            try:
                self._work()
                return
            except BaseException as error:
                # The futures must be told, or their clients wait until the deadline.
                self.num_restarts += 1
                logger.error(
                    "worker %s was killed by %s and works again", self.name, type(error).__name__
                )
                for part in self._at_work:
                    if part.order is not None:
                        part.order.fail(WorkerDied())
                self._at_work = []

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            start = self._lap_began = time.monotonic()
            # Some are answered before the batch ends and come back meanwhile: they are not to be
            # counted twice.
            self._expected = min(MAX_BATCH_SENTENCES, len(batch) + len(self._waiting))
            self._answer(batch)
            self._last_seconds = time.monotonic() - start
            self._at_work = []

    def _next(self) -> list[Part] | None:
        with self._changed:
            while not self._waiting and not self._is_closed:
                self._hear(None)
            self._linger()
            self._waiting = [part for part in self._waiting if not part.is_over]
            if self._is_closed:
                for part in self._waiting:
                    if part.order is not None:
                        part.order.fail(WorkerDied())
                return None
            batch = choose_batch(self._waiting)
            self._begin(batch)
            return batch

    def _begin(self, batch: Sequence[Part]) -> None:
        chosen = set(map(id, batch))
        for part in batch:
            part.worker = self
        self._waiting = [part for part in self._waiting if id(part) not in chosen]
        self._at_work = [*(part for part in self._at_work if not part.is_answered), *batch]
        self.num_batches += bool(batch)
        self.num_parts += len(batch)

    def lap(self) -> float:
        """The time that no answer has paid for yet, divided among those at work: a batch is not
        paid for by its first answer.
        """
        now = time.monotonic()
        spent = now - self._lap_began
        share = spent / max(
            1, sum(not part.is_answered and not part.is_over for part in self._at_work)
        )
        self._lap_began = now - (spent - share)
        return share

    def pause(self) -> None:
        """Those of a much lower rank than all at work are answered now; what was begun goes on
        afterwards.
        """
        while batch := self._next_before(self._at_work):
            spent, outer = time.monotonic() - self._lap_began, self._at_work
            self._lap_began += spent
            self._num_nested += 1
            try:
                with self._changed:
                    self._at_work = []
                    self._begin(batch)
                self._answer(batch)
                self._at_work = []
            finally:
                self._num_nested -= 1
                self._at_work = [*outer, *self._at_work]
                self._lap_began = time.monotonic() - spent

    def _next_before(self, others: Sequence[Part]) -> list[Part]:
        with self._changed:
            bound = (
                min((rank_of(part) for part in others if not part.is_answered), default=0.0)
                - OVERTAKE_SECONDS
            )
            if self._is_closed or self._num_nested >= MAX_NESTED:
                return []
            first = list(takewhile(lambda part: rank_of(part) < bound, self._waiting))
            return choose_batch([part for part in first if not part.is_over])

    def _hear(self, seconds: float | None) -> bool:
        """Wait until something is put, at most so long; whether it was. The lock is held."""
        return self._changed.wait(seconds)

    def more(self, num_alive: int) -> list[Part]:
        """Those who join the flow at work: of its key, unless another has waited longer, if enough
        have come and not so many that they fill a batch of their own."""
        self.pause()
        with self._changed:
            if self._is_closed or not 0 < len(self._waiting) < MAX_BATCH_SENTENCES:
                return []
            self._waiting = [part for part in self._waiting if not part.is_over]
            here = [part for part in self._at_work if not part.is_answered and not part.is_over]
            key = self._at_work[0].key
            if not self._waiting or self._waiting[0].key != key:
                return []
            batch = choose_batch([part for part in self._waiting if part.key == key], beside=here)
            if len(batch) < JOIN_SHARE * num_alive:
                return []
            self._begin(batch)
            return batch

    def _linger(self) -> None:
        """More may be on their way: those whom the last batch answered. A flow takes them in later."""
        if self._waiting and self._waiting[0].flow is not None:
            return
        until = time.monotonic() + min(LINGER_SECONDS, self._last_seconds)
        while len(self._waiting) < self._expected and not self._is_closed:
            left = min(max(LINGER_GAP, LINGER_SHARE * self._last_seconds), until - time.monotonic())
            if left <= 0 or not self._hear(left):
                return

    def _answer(self, batch: list[Part]) -> None:
        if not batch:
            return
        # A full batch of like lengths is cheaper than a flow; and a second try goes part by part.
        flow = (
            batch[0].flow if self._at_work == batch and len(batch) < MAX_BATCH_SENTENCES else None
        )
        try:
            if flow is not None:
                flow(batch, self.more)
                return
            results = batch[0].run(batch)
        except Abandoned:
            return
        except Exception as error:
            left = (
                [part for part in self._at_work if not part.is_answered]
                if flow is not None
                else batch
            )
            if len(left) == 1 and left[0].order is not None:
                left[0].order.fail(error)
            for part in left if len(left) > 1 else ():
                self._answer([part])
            return
        for part, result in zip(batch, results, strict=True):
            if part.order is not None:
                part.order.deliver(part, result)


def rank_of(part: Part) -> float:
    """The lowest goes first."""
    return 0.0 if part.order is None else part.order.rank


def choose_batch(waiting: Sequence[Part], *, beside: Sequence[Part] = ()) -> list[Part]:
    """The first part, and those of its key that are nearest to it in length, as many as fit beside
    those at work.
    """
    if not waiting:
        return []
    first = waiting[0]
    if first.key is None:
        return [first]
    others = [part for part in waiting if part.key == first.key][:MAX_CHOICE]
    if len(others) > MAX_BATCH_SENTENCES:
        others.sort(key=lambda part: abs(part.weight - first.weight))
    batch: list[Part] = []
    longest, num_beside = max((part.weight for part in beside), default=0), len(beside)
    for part in others:
        width, count = max(longest, part.weight), num_beside + len(batch) + 1
        if count > MAX_BATCH_SENTENCES or (count > 1 and width * count > MAX_BATCH_TOKENS):
            break
        batch.append(part)
        longest = width
    return batch
