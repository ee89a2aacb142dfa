"""A worker whose searches run in a process of their own, so that HTTP and model share no interpreter.

The model's thread and the event loop are both Python: with a small model each waited for the other at every step. Here sentences go
through a pipe to `searcher.py` and translations come back; the rest (traces, streams) stays with the thread of `worker.py`, and its
copy of the weights. Queue, deadline and leaving are as before: who leaves is told to the process, which drops the row at its
next step. A process that dies is started again and given what it had once more; whoever has seen two die, and everybody if one dies
before it has read its model, is told (503). Tested: a real process, killed, left, closed.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import Any

import torch

import headwise
from headwise.decoding.choices import DecodingSettings
from headwise.errors import HeadwiseError
from headwise.serving.frames import FrameReader, name_manifest, write_frame
from headwise.serving.metrics import resident_bytes
from headwise.serving.orders import Order, Part
from headwise.serving.search import Search, Sentence, write_down
from headwise.serving.worker import CLOSE_SECONDS, Worker, WorkerDied
from headwise.tasks.translator import Translator

AGAIN_SECONDS = 1.0
"""Between the death of a process and the birth of the next; twice as long after each that could not begin."""
MAX_DOUBLINGS = 5

logger = logging.getLogger(__name__)


class Bug(RuntimeError):  # noqa: N818 - not ours to mend here
    """A mistake in the process; its name is all that is known."""


class WorkerApart(Worker):
    """A worker with a process beside its thread."""

    def __init__(self, name: str, translator: Translator, bundle: Path, *, precision: str = "auto") -> None:
        super().__init__(name)
        self._translator = translator
        # -P: the directory the server is started in is no place for modules.
        self._command = [sys.executable, "-P", "-m", "headwise.serving.searcher"]
        self._command += [str(bundle), precision, str(torch.get_num_threads()), name_manifest(bundle)]
        self._pipes: asyncio.SubprocessTransport | None = None
        self._orders: dict[int, Order] = {}
        self._has_begun, self._num_stillborn = False, 0
        self._second_try: set[int] = set()
        self._number = 0
        self._counted = {"batches": 0, "parts": 0, "waiting": 0}
        self._ended = asyncio.Event()
        self._again: asyncio.TimerHandle | None = None

    @property
    def is_alive(self) -> bool:
        return super().is_alive and self._has_begun

    @property
    def num_waiting(self) -> int:
        return super().num_waiting + self._counted["waiting"]

    @property
    def resident_bytes(self) -> int:
        """Memory of the process."""
        return 0 if self._pipes is None else resident_bytes(Path(f"/proc/{self._pipes.get_pid()}/statm"))

    async def open(self) -> None:
        """Start the process; what is put before it has loaded its model waits in the pipe."""
        package = Path(headwise.__file__).resolve().parents[1]
        path = os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
        loop = asyncio.get_running_loop()
        # A session of its own: Ctrl-C reaches the server alone, which closes the pipe.
        transport, _ = await loop.subprocess_exec(
            lambda: _Ear(self._take, self._bury),
            *self._command,
            stderr=None,
            env=os.environ | {"PYTHONPATH": path},
            start_new_session=True,
        )
        self._pipes = transport
        if self._is_closed:  # while it was being started
            transport.kill()
        for number in self._orders:
            self._send(number)

    async def shut(self) -> None:
        """End the process: what it has is finished by now, or given up."""
        self._is_closed = True
        if self._again is not None:
            self._again.cancel()
        if self._pipes is None:
            return
        pipe = self._pipes.get_pipe_transport(0)
        assert pipe is not None
        self._ended.clear()
        pipe.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), CLOSE_SECONDS)
        if self._pipes is not None:
            self._pipes.kill()
            await self._ended.wait()

    def put(self, order: Order) -> None:
        if not order.parts or not all(_can_travel(part) for part in order.parts):
            super().put(order)
        elif self._is_closed or self._num_stillborn:
            order.fail(WorkerDied())
        else:
            self._number += 1
            number = self._number
            self._orders[number] = order
            order.on_leave = lambda: self._leave(number)
            self._send(number)

    def _send(self, number: int) -> None:
        """Now, or when there is a process again."""
        order = self._orders[number]
        search: Search = order.parts[0].run  # type: ignore[assignment]
        sentences: list[Sentence] = [part.argument for part in order.parts]
        frame = {
            "order": number,
            "seconds": order.deadline - monotonic(),
            "settings": write_settings(search.settings),
            "sentences": [
                [one.ids, one.phrases.forbidden, one.phrases.required, one.phrases.prefix, one.number]
                for one in sentences
            ],
        }
        self._write(frame)

    def _leave(self, number: int) -> None:
        if self._orders.pop(number, None) is not None:
            self._second_try.discard(number)
            self._write({"leave": number})

    def _write(self, frame: dict[str, Any]) -> None:
        if self._pipes is not None:
            pipe: Any = self._pipes.get_pipe_transport(0)
            pipe.write(write_frame(frame))

    def _take(self, frame: dict[str, Any]) -> None:
        """What the process says."""
        if "begun" in frame:
            self._has_begun, self._num_stillborn = True, 0
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
            found = [write_down(self._translator, *one[:3], is_whole=one[3]) for one in frame["found"]]
            order.deliver(order.parts[frame["place"]], tuple(found))
        elif "error" in frame:
            order.fail(HeadwiseError(*frame["error"]))
        else:
            order.fail(Bug(frame["bug"]))
        if order.future.done():
            del self._orders[frame["order"]]
            self._second_try.discard(frame["order"])

    def _bury(self) -> None:
        """The process has ended: as it should, or not."""
        if self._pipes is not None:
            self._pipes.close()
        self._pipes = None
        self._ended.set()
        self._counted = {"batches": 0, "parts": 0, "waiting": 0}
        self._num_stillborn += not self._has_begun
        self._has_begun = False
        give_up = self._is_closed or self._num_stillborn
        waiting = {number: order for number, order in self._orders.items() if not order.is_over}
        self._orders = {} if give_up else {n: order for n, order in waiting.items() if n not in self._second_try}
        self._second_try = set(self._orders)
        for number in waiting.keys() - self._orders.keys():
            waiting[number].fail(
                WorkerDied("the process that searches has ended; if it could say why, it did so above")
            )
        if not self._is_closed:
            self.num_restarts += 1
            logger.error("the process of worker %s has ended and is started again", self.name)
            seconds = AGAIN_SECONDS * 2 ** min(self._num_stillborn, MAX_DOUBLINGS)
            loop = asyncio.get_running_loop()
            self._again = loop.call_later(seconds, lambda: asyncio.ensure_future(self._open_again()))

    async def _open_again(self) -> None:
        try:
            await self.open()
        except OSError:  # no memory or no files left, for the moment
            self._bury()


class _Ear(asyncio.SubprocessProtocol):
    """Frames as they come."""

    def __init__(self, take: Callable[[dict[str, Any]], None], bury: Callable[[], None]) -> None:
        self._take_frame, self._bury = take, bury
        self._frames = FrameReader()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        try:
            for frame in self._frames.feed(data):
                self._take_frame(frame)
        except ValueError:  # something else writes into the pipe
            logger.error("what a searching process says cannot be read: it is ended")
            self._frames = FrameReader()
            self._transport.kill()

    def process_exited(self) -> None:
        self._bury()


def _can_travel(part: Part) -> bool:
    """Sentences do; functions and what is watched step by step stay here."""
    return type(part.run) is Search and part.run.watch is None


@lru_cache(256)
def write_settings(settings: DecodingSettings) -> str:
    return settings.model_dump_json()
