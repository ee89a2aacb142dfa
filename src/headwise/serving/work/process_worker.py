"""A worker whose searches run in a process of their own, so that HTTP and model share no
interpreter.

The model's thread and the event loop are both Python: with a small model each waited for the other
at every step. Here sentences go through a pipe to `searcher.py` and translations come back; the
rest (traces, streams) stays with the thread of `worker.py`, and its copy of the weights. Queue,
deadline and leaving are as before: who leaves is told to the process, which drops the row at its
next step. A process that dies, or hangs and is killed (`search_process.py`), is started again and
given what it had once more; whoever has seen two die, everybody if one dies before it has read its
model, and whoever has spent half their time waiting for one to begin, is told (503). Tested: a real
process, killed, stopped, left, closed.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from time import monotonic
from typing import Any

import torch

from headwise.child_processes import child_command
from headwise.decoding.choices import DecodingSettings
from headwise.decoding.results import Hypothesis
from headwise.errors import HeadwiseError
from headwise.serving.http.errors import Refusal
from headwise.serving.work.admission import Load
from headwise.serving.work.bundle_files import HeldFiles
from headwise.serving.work.jobs import Order, Part
from headwise.serving.work.process_handle import SearchProcess, start_process
from headwise.serving.work.search import Search, Sentence
from headwise.serving.work.worker import CLOSE_SECONDS, Worker, WorkerDied
from headwise.tasks.translation.translator import Translator

AGAIN_SECONDS = 1.0
"""Between the death of a process and the birth of the next; twice as long after each that could not
begin."""
MAX_DOUBLINGS = 5
START_SECONDS = 5
"""After so long who came while a model was being loaded is told to come back."""

logger = logging.getLogger(__name__)


class Bug(RuntimeError):  # noqa: N818 - not ours to mend here
    """A mistake in the process; its name is all that is known."""


class WorkerApart(Worker):
    """A worker with a process beside its thread."""

    def __init__(
        self, name: str, translator: Translator, held: HeldFiles, *, precision: str = "auto"
    ) -> None:
        super().__init__(name)
        self._translator, self._held = translator, held
        words = (
            str(held.bundle),
            precision,
            str(torch.get_num_threads()),
            held.manifest,
            json.dumps(held.descriptors),
        )
        self._command = child_command("headwise.serving.work.worker_process", *words)
        self._process: SearchProcess | None = None
        self._apart = Load()
        self._orders: dict[int, Order] = {}
        self._unsent: dict[int, None] = {}
        """Orders that wait for room in the pipe, oldest first."""
        self._gone: list[int] = []
        """Orders the process has, whose clients left, not told yet for want of room."""
        self._num_stillborn = 0
        self._second_try: set[int] = set()
        self._number = 0
        self._counted = {"batches": 0, "parts": 0, "waiting": 0}
        self._ended = asyncio.Event()
        self._again: asyncio.TimerHandle | None = None

    @property
    def is_alive(self) -> bool:
        return super().is_alive and self._process is not None and self._process.is_answering

    def is_ready_for(self, parts: Sequence[Part]) -> bool:
        return self.is_alive if travels(parts) else super().is_alive

    def load_of(self, parts: Sequence[Part]) -> Load:
        """The process and the thread work beside each other."""
        return self._apart if travels(parts) else self.load

    @property
    def seconds(self) -> float:
        return max(self.load.seconds, self._apart.seconds)

    @property
    def num_waiting(self) -> int:
        return super().num_waiting + self._counted["waiting"] + len(self._unsent)

    @property
    def resident_bytes(self) -> int:
        """Memory of the process."""
        return 0 if self._process is None else self._process.resident_bytes

    async def open(self) -> None:
        """Start the process; what is put before it has loaded its model waits in the pipe."""
        process = await start_process(
            self._command, self, files=list(self._held.descriptors.values())
        )
        if process.has_ended:
            return
        self._process = process
        if self._is_closed:  # while it was being started
            process.kill()
        self.on_room()

    async def shut(self) -> None:
        """End the process: what it has is finished by now, or given up."""
        self._is_closed = True
        if self._again is not None:
            self._again.cancel()
        if self._process is None:
            return
        self._ended.clear()
        self._process.end_input()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), CLOSE_SECONDS)
        if self._process is not None:
            self._process.kill()
            await self._ended.wait()

    def put(self, order: Order) -> None:
        if not travels(order.parts):
            super().put(order)
        elif self._is_closed or self._num_stillborn:
            order.fail(WorkerDied())
        else:
            self._number += 1
            number = self._number
            self._orders[number] = order
            order.on_leave = lambda: self._leave(number)
            self._unsent[number] = None
            self._bound_wait(number)
            self.on_room()

    @property
    def _has_begun(self) -> bool:
        return self._process is not None and self._process.has_begun

    def _bound_wait(self, number: int) -> None:
        """Half of the time an order has left is for a process to begin; the other half is for the
        client to ask elsewhere.
        """
        if not self._has_begun:
            seconds = (self._orders[number].deadline - monotonic()) / 2
            asyncio.get_running_loop().call_later(seconds, self._give_up_waiting, number)

    def _give_up_waiting(self, number: int) -> None:
        if number in self._orders and not self._has_begun:
            order = self._orders[number]
            self._leave(number)
            order.fail(still_loading())

    def on_room(self) -> None:
        """Send what waits, while the pipe takes it and there is a process."""
        while self._process is not None and self._process.has_room and self._gone:
            self._process.write({"leave": self._gone.pop()})
        while self._process is not None and self._process.has_room and self._unsent:
            number = next(iter(self._unsent))
            del self._unsent[number]
            self._process.write(self._as_frame(number))

    def _as_frame(self, number: int) -> dict[str, Any]:
        order = self._orders[number]
        search: Search = order.parts[0].run  # type: ignore[assignment]
        sentences: list[Sentence] = [part.argument for part in order.parts]
        return {
            "order": number,
            "seconds": order.deadline - monotonic(),
            "rank": order.rank - monotonic(),
            "settings": write_settings(search.settings),
            "sentences": [[one.ids, one.prefix, one.number] for one in sentences],
        }

    def _leave(self, number: int) -> None:
        if self._orders.pop(number, None) is None:
            return
        self._second_try.discard(number)
        if number in self._unsent:
            del self._unsent[number]
        else:
            self._gone.append(number)
            self.on_room()

    def take(self, frame: dict[str, Any]) -> None:
        """What the process says."""
        if "begun" in frame:
            self._num_stillborn = 0
            return
        if "batches" in frame:
            self.num_batches += frame["batches"] - self._counted["batches"]
            self.num_parts += frame["parts"] - self._counted["parts"]
            self._counted = frame
            return
        order = self._orders.get(frame["order"])
        if order is None:
            return
        if "found" in frame:
            # The log-probabilities of single tokens are not sent: nobody asks for them here.
            found = [
                self._translator.write_down(
                    Hypothesis(tokens, total, score, token_log_probabilities=(), finished=finished)
                )
                for tokens, total, score, finished in frame["found"]
            ]
            order.deliver(order.parts[frame["place"]], tuple(found), seconds=frame["seconds"])
        elif "error" in frame:
            order.fail(HeadwiseError(*frame["error"]))
        else:
            order.fail(Bug(frame["bug"]))
        if order.future.done():
            del self._orders[frame["order"]]
            self._second_try.discard(frame["order"])

    def bury(self) -> None:
        """The process has ended: as it should, or not."""
        self._num_stillborn += self._process is None or not self._process.has_begun
        self._process = None
        self._ended.set()
        self._counted = {"batches": 0, "parts": 0, "waiting": 0}
        self._gone = []
        give_up = self._is_closed or self._num_stillborn
        waiting = {number: order for number, order in self._orders.items() if not order.is_over}
        self._orders = (
            {}
            if give_up
            else {n: order for n, order in waiting.items() if n not in self._second_try}
        )
        self._second_try = set(self._orders)
        self._unsent = dict.fromkeys(self._orders)
        for number in self._orders:
            self._bound_wait(number)
        for number in waiting.keys() - self._orders.keys():
            waiting[number].fail(
                WorkerDied(
                    "the process that searches has ended; if it could say why, it did so above"
                )
            )
        if not self._is_closed:
            self.num_restarts += 1
            logger.error("the process of worker %s has ended and is started again", self.name)
            seconds = AGAIN_SECONDS * 2 ** min(self._num_stillborn, MAX_DOUBLINGS)
            loop = asyncio.get_running_loop()
            self._again = loop.call_later(
                seconds, lambda: asyncio.ensure_future(self._open_again())
            )

    async def _open_again(self) -> None:
        try:
            await self.open()
        except OSError:  # no memory or no files left, for the moment
            self.bury()


def still_loading() -> Refusal:
    """For whoever cannot wait until a model has been read."""
    en, zh = "the model is being loaded; try again soon", "模型正在载入；请稍后再试"
    return Refusal(503, "starting", en=en, zh=zh, retry_after=START_SECONDS)


def travels(parts: Sequence[Part]) -> bool:
    """Sentences do; functions and what is watched step by step stay here."""
    return bool(parts) and all(
        type(part.run) is Search and part.run.watch is None for part in parts
    )


@lru_cache(256)
def write_settings(settings: DecodingSettings) -> str:
    return settings.model_dump_json()
