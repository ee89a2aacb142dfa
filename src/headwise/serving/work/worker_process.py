"""The process that searches: a model, a pipe with sentences coming in, a pipe with translations
going out.

    headwise.serving.work.worker_process BUNDLE PRECISION THREADS SHA256-OF-ITS-MANIFEST OPEN-FILES      (child_processes.py)

It is the worker of `worker.py` with another ear: instead of waiting for a condition it reads its
pipe, in the same thread, between two steps. So nothing here ever waits for another thread's hold of
the interpreter, and the server's event loop never waits for ours. It ends when the pipe does, and
on Linux with the server even while it hangs: a server that dies leaves no process behind. Tested
through `apart.py`.
"""

import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter

from headwise.decoding.choices import DecodingSettings
from headwise.decoding.results import SearchResult
from headwise.errors import HeadwiseError
from headwise.language import say
from headwise.serving.work.bundle_files import copied, name_manifest
from headwise.serving.work.jobs import Order, Part
from headwise.serving.work.pipe_frames import FrameReader, write_frame
from headwise.serving.work.search import Search, Sentence
from headwise.serving.work.worker import Worker
from headwise.tasks.translation.translator import Translator

CHUNK = 65_536
KEPT_SETTINGS = 256
PR_SET_PDEATHSIG = 1

_SETTINGS: TypeAdapter[DecodingSettings] = TypeAdapter(DecodingSettings)


class Desk(Worker):
    """A worker without a thread, whose orders come through a pipe."""

    def __init__(self, translator: Translator, *, source: int, sink: int) -> None:
        super().__init__("searcher")
        self._source, self._sink = source, sink
        self._frames = FrameReader()
        self._orders: dict[int, PipedOrder] = {}
        self._said: list[bytes] = []
        self._counted = (0, 0, 0)
        self.search = lru_cache(KEPT_SETTINGS)(
            lambda text: PipedSearch(translator, _SETTINGS.validate_json(text))
        )

    def live(self) -> None:
        """Until the pipe ends."""
        self.say({"begun": True})
        self._write()
        self._live()

    def listen(self) -> None:
        """Between two steps: what has come, and what there is to say."""
        with self._changed:
            self._hear(0.0)

    def pause(self) -> None:
        self.listen()
        super().pause()

    def say(self, frame: dict[str, Any]) -> None:
        self._said.append(write_frame(frame))

    def _hear(self, seconds: float | None) -> bool:
        self._write()
        if self._is_closed or not select.select([self._source], [], [], seconds)[0]:
            return False
        data = os.read(self._source, CHUNK)
        if not data:
            self._is_closed = True
            for order in self._orders.values():
                order.leave()
        for frame in self._frames.feed(data):
            self._take(frame)
        return True

    def _write(self) -> None:
        counts = (self.num_batches, self.num_parts, self.num_waiting)
        if counts != self._counted:
            self._counted = counts
            self.say(dict(zip(("batches", "parts", "waiting"), counts, strict=True)))
        data, self._said = b"".join(self._said), []
        while data:
            data = data[os.write(self._sink, data) :]

    def _take(self, frame: dict[str, Any]) -> None:
        if "ping" in frame:
            self.say({"pong": True})
            return
        if "leave" in frame:
            order = self._orders.pop(frame["leave"], None)
            if order is not None:
                order.leave()
            return
        search = self.search(frame["settings"])
        flow = search.flow if search.flows else None
        parts = []
        for ids, prefix, number in frame["sentences"]:
            sentence = Sentence(tuple(ids), tuple(prefix), number)
            parts.append(Part(search, flow, sentence, key=frame["settings"], weight=len(ids) + 1))
        name, now = frame["order"], time.monotonic()
        self._orders[name] = PipedOrder(
            parts, deadline=now + frame["seconds"], rank=now + frame["rank"], name=name, desk=self
        )
        self.put(self._orders[name])

    def forget(self, name: int) -> None:
        self._orders.pop(name, None)


class PipedOrder(Order):
    """What is delivered is said at once."""

    def __init__(
        self, parts: Sequence[Part], *, deadline: float, rank: float, name: int, desk: Desk
    ) -> None:
        super().__init__(parts, deadline=deadline, rank=rank)
        self._name, self._desk = name, desk

    def deliver(self, part: Part, result: Any, *, seconds: float | None = None) -> None:
        if not self.has_answered(part):
            seconds = self._desk.lap()
            super().deliver(part, result, seconds=seconds)
            self._desk.say(
                {"order": self._name, "place": part.place, "found": result, "seconds": seconds}
            )
        if self.future.done():
            self._desk.forget(self._name)

    def fail(self, error: BaseException) -> None:
        super().fail(error)
        told: dict[str, Any] = {"bug": type(error).__name__}
        if isinstance(error, HeadwiseError):
            told = {"error": [error.en, error.zh]}
        self._desk.say({"order": self._name, **told})
        self._desk.forget(self._name)


@dataclass(frozen=True)
class PipedSearch(Search):
    """Answers with numbers of tokens."""

    def read(self, result: SearchResult) -> Any:
        return [
            [one.tokens, one.log_probability, one.score, one.finished] for one in result.hypotheses
        ]


def main(arguments: Sequence[str]) -> None:
    bundle, precision, threads, manifest, files = arguments
    # The server decides when it is over; a signal to all of its processes is for the server.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sink = os.dup(1)
    os.dup2(2, 1)  # whatever prints must not write into the frames
    _die_with_the_server()
    torch.set_num_threads(int(threads))
    try:
        translator = _load(Path(bundle), precision, manifest, json.loads(files))
    except HeadwiseError as error:
        sys.exit(say(f"headwise: error: {error}", f"headwise: 错误: {error}"))
    gc.freeze()  # what was loaded stays
    with contextlib.suppress(BrokenPipeError):
        Desk(translator, source=0, sink=sink).live()


def _load(bundle: Path, precision: Any, manifest: str, files: dict[str, int]) -> Translator:
    """The model the server began with: where it was, or from the files that the server holds open
    if another is there now.
    """
    with contextlib.suppress(HeadwiseError):
        translator = Translator.load(bundle, device="cpu", precision=precision)
        if name_manifest(bundle) == manifest:
            return translator
    with copied(files) as directory:
        return Translator.load(directory, device="cpu", precision=precision)


def _die_with_the_server() -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
