"""One thread a model. It takes the oldest part, joins others of the same key to it, and answers them together.

    batch = the oldest part + parts of equal key, nearest in length, up to `sentences` and `tokens` (padding counted)

While a batch is computed the next one gathers in the queue by itself, so an idle server answers at once and a busy one in
full batches. A search may deliver what is done before the rest (`sentences.py`). Clients that wait for their answers come back right after it: if fewer wait than were there a batch ago, the
thread lingers while they keep coming. Without that, 64 clients were answered in batches of 32: twice the steps. A batch that fails is answered part by part, so
that one request cannot spoil another's. Whatever kills the thread costs the batch at hand and nothing else.
Tested: joining, order, budget, leaving, deadlines, failures, a killed thread.
"""

import logging
import threading
import time
from collections.abc import Sequence

from headwise.serving.orders import Abandoned, Order, Part

MAX_BATCH_SENTENCES = 64
MAX_BATCH_TOKENS = 8_192
LINGER_SECONDS = 0.1
"""The thread lingers at most this long, and at most as long as the last batch took."""
LINGER_GAP, LINGER_SHARE = 0.005, 0.05
"""And only while they keep coming: so long, or so much of the last batch's time, without an arrival ends it."""
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
        self._at_work: Sequence[Part] = ()
        self._changed = threading.Condition()
        self._is_closed = False
        self._expected, self._last_seconds = 0, 0.0
        self._thread = threading.Thread(target=self._live, name=f"headwise-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    def put(self, order: Order) -> None:
        """Into the queue; its length is bounded by whoever calls."""
        with self._changed:
            self._waiting.extend(order.parts)
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
                logger.error("worker %s was killed by %s and works again", self.name, type(error).__name__)
                for part in self._at_work:
                    if part.order is not None:
                        part.order.fail(WorkerDied())

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            self._at_work = batch
            start = time.monotonic()
            # Some are answered before the batch ends and come back meanwhile: they are not to be counted twice.
            self._expected = min(MAX_BATCH_SENTENCES, len(batch) + len(self._waiting))
            self._answer(batch)
            self._last_seconds = time.monotonic() - start
            self._at_work = ()

    def _next(self) -> list[Part] | None:
        with self._changed:
            while not self._waiting and not self._is_closed:
                self._changed.wait()
            self._linger()
            self._waiting = [part for part in self._waiting if not part.is_over]
            if self._is_closed:
                for part in self._waiting:
                    if part.order is not None:
                        part.order.fail(WorkerDied())
                return None
            batch = choose_batch(self._waiting)
            chosen = set(map(id, batch))
            self._waiting = [part for part in self._waiting if id(part) not in chosen]
            return batch

    def _linger(self) -> None:
        """More may be on their way: those whom the last batch answered."""
        until = time.monotonic() + min(LINGER_SECONDS, self._last_seconds)
        while len(self._waiting) < self._expected and not self._is_closed:
            left = min(max(LINGER_GAP, LINGER_SHARE * self._last_seconds), until - time.monotonic())
            if left <= 0 or not self._changed.wait(left):
                return

    def _answer(self, batch: Sequence[Part]) -> None:
        if not batch:
            return
        try:
            results = batch[0].run(batch)
        except Abandoned:
            return
        except Exception as error:
            if len(batch) == 1:
                if batch[0].order is not None:
                    batch[0].order.fail(error)
                return
            for part in batch:
                self._answer([part])
            return
        self.num_batches += 1
        self.num_parts += len(batch)
        for part, result in zip(batch, results, strict=True):
            if part.order is not None:
                part.order.deliver(part, result)


def choose_batch(waiting: Sequence[Part]) -> list[Part]:
    """The oldest part, and those of its key that are nearest to it in length, as many as fit."""
    if not waiting:
        return []
    first = waiting[0]
    if first.key is None:
        return [first]
    others = [part for part in waiting[1:] if part.key == first.key]
    if len(others) >= MAX_BATCH_SENTENCES:
        others.sort(key=lambda part: abs(part.weight - first.weight))
    batch, longest = [first], first.weight
    for part in others:
        width = max(longest, part.weight)
        if len(batch) == MAX_BATCH_SENTENCES or width * (len(batch) + 1) > MAX_BATCH_TOKENS:
            break
        batch.append(part)
        longest = width
    return batch
