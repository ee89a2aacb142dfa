"""The program of a worker process: reads sentences from one pipe, writes translations to another.

    headwise.serving.work.worker_process BUNDLE PRECISION THREADS SHA256-OF-MANIFEST OPEN-FILES

`child_processes.py` starts it. It computes batches like `worker.py` but has no second thread: it
reads its pipe between two steps, so no thread waits for another's interpreter lock. It ends when
the pipe closes. On Linux it also ends with the server if it hangs, so a server that dies leaves no
process behind. Tested through `process_worker.py`.
"""

import contextlib
import ctypes
import gc
import json
import logging
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
from headwise.serving.work.bundle_files import copied_files, hash_manifest
from headwise.serving.work.jobs import Job, JobPart
from headwise.serving.work.pipe_frames import FrameReader, write_frame
from headwise.serving.work.search import EncodedSentence, Search
from headwise.serving.work.worker import Worker
from headwise.tasks.translation.translator import Translator

CHUNK = 65_536
KEPT_SETTINGS = 256
PR_SET_PDEATHSIG = 1

logger = logging.getLogger(__name__)

_SETTINGS: TypeAdapter[DecodingSettings] = TypeAdapter(DecodingSettings)


class PipeWorker(Worker):
    """A worker without a thread, whose jobs come through a pipe."""

    def __init__(self, translator: Translator, *, source: int, sink: int) -> None:
        super().__init__("process")
        self._source, self._sink = source, sink
        self._frames = FrameReader()
        self._jobs: dict[int, PipeJob] = {}
        self._outgoing: list[bytes] = []
        self._counts = (0, 0, 0)
        self.search = lru_cache(KEPT_SETTINGS)(
            lambda text: PipeSearch(translator, _SETTINGS.validate_json(text))
        )

    def run(self) -> None:
        """Compute until the pipe closes."""
        self.send({"started": True})
        self._flush()
        self._run_forever()

    def listen(self) -> None:
        """Between two steps: send results, and read what has arrived."""
        with self._changed:
            self._wait_for_jobs(0.0)

    def run_urgent(self) -> None:
        self.listen()
        super().run_urgent()

    def send(self, frame: dict[str, Any]) -> None:
        self._outgoing.append(write_frame(frame))

    def _wait_for_jobs(self, seconds: float | None) -> bool:
        self._flush()
        if self._is_closed or not select.select([self._source], [], [], seconds)[0]:
            return False
        data = os.read(self._source, CHUNK)
        if not data:
            self._is_closed = True
            for job in self._jobs.values():
                job.cancel()
        for frame in self._frames.feed(data):
            self._on_frame(frame)
        return True

    def _flush(self) -> None:
        counts = (self.num_batches, self.num_parts, self.num_waiting)
        if counts != self._counts:
            self._counts = counts
            self.send(dict(zip(("batches", "parts", "waiting"), counts, strict=True)))
        data, self._outgoing = b"".join(self._outgoing), []
        while data:
            data = data[os.write(self._sink, data) :]

    def _on_frame(self, frame: dict[str, Any]) -> None:
        if "ping" in frame:
            self.send({"pong": True})
            return
        if "cancel" in frame:
            job = self._jobs.pop(frame["cancel"], None)
            if job is not None:
                job.cancel()
            return
        search = self.search(frame["settings"])
        try:
            run_continuously = search.run_continuously if search.can_run_continuously else None
        except HeadwiseError as error:  # a memory that was taken away
            self.send({"job": frame["job"], "error": [error.en, error.zh]})
            return
        parts = []
        for ids, prefix, number in frame["sentences"]:
            sentence = EncodedSentence(tuple(ids), tuple(prefix), number)
            parts.append(
                JobPart(
                    search,
                    run_continuously,
                    sentence,
                    key=frame["settings"],
                    num_tokens=len(ids) + 1,
                )
            )
        name, now = frame["job"], time.monotonic()
        self._jobs[name] = PipeJob(
            parts, deadline=now + frame["seconds"], rank=now + frame["rank"], name=name, worker=self
        )
        self.put(self._jobs[name])

    def forget(self, name: int) -> None:
        self._jobs.pop(name, None)


class PipeJob(Job):
    """A job that sends each result as soon as it is delivered."""

    def __init__(
        self,
        parts: Sequence[JobPart],
        *,
        deadline: float,
        rank: float,
        name: int,
        worker: PipeWorker,
    ) -> None:
        super().__init__(parts, deadline=deadline, rank=rank)
        self._name, self._worker = name, worker

    def deliver(self, part: JobPart, result: Any, *, seconds: float | None = None) -> None:
        if not self.has_answered(part):
            seconds = self._worker.charge_seconds()
            super().deliver(part, result, seconds=seconds)
            self._worker.send(
                {"job": self._name, "index": part.index, "found": result, "seconds": seconds}
            )
        if self.future.done():
            self._worker.forget(self._name)

    def fail(self, error: BaseException) -> None:
        super().fail(error)
        message: dict[str, Any] = {"bug": type(error).__name__}
        if isinstance(error, HeadwiseError):
            message = {"error": [error.en, error.zh]}
        self._worker.send({"job": self._name, **message})
        self._worker.forget(self._name)


@dataclass(frozen=True)
class PipeSearch(Search):
    """A search whose results are token ids."""

    def read(self, result: SearchResult) -> Any:
        return [
            [one.tokens, one.log_probability, one.score, one.finished] for one in result.hypotheses
        ]


def main(arguments: Sequence[str]) -> None:
    bundle, precision, threads, manifest, files = arguments
    # The server decides when to stop; a signal to the process group is meant for the server.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sink = os.dup(1)
    os.dup2(2, 1)  # prints must not get into the pipe
    _die_with_parent()
    torch.set_num_threads(int(threads))
    try:
        translator = _load(Path(bundle), precision, manifest, json.loads(files))
    except HeadwiseError as error:
        sys.exit(say(f"headwise: error: {error}", f"headwise: 错误: {error}"))
    gc.freeze()  # the garbage collector need not scan the model
    with contextlib.suppress(BrokenPipeError):
        PipeWorker(translator, source=0, sink=sink).run()


def _load(bundle: Path, precision: Any, manifest: str, files: dict[str, int]) -> Translator:
    """The model the server started with: from its directory, or, if that holds another model now,
    from the files that the server keeps open.
    """
    with contextlib.suppress(HeadwiseError):
        translator = Translator.load(bundle, device="cpu", precision=precision)
        if hash_manifest(bundle) == manifest:
            return translator
    with copied_files(files) as directory:
        translator = Translator.load(directory, device="cpu", precision=precision)
        # The fingerprint is read while the files are there: a memory asks for it later.
        logger.debug("loaded a copy of %s", translator.asked_models.fingerprint)
        return translator


def _die_with_parent() -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
