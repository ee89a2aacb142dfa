"""A worker that translates in a separate process, so that the HTTP server and the model do not
compete for Python's interpreter lock.

With a small model in the server's process, the model's thread and the event loop wait for each
other's lock at every step. Here sentences go through a pipe to `worker_process.py`, and
translations come back. Everything else (traces, streams) is computed by the thread of `worker.py`
with the server's own copy of the weights. Queue, deadline and cancelling are those of `worker.py`:
a cancelled job is reported to the process, which drops its sentences at the next step.

A process that dies, or hangs and is killed (`process_handle.py`), is restarted and gets its jobs
once more. A job is answered with 503 if two processes died while they had it, or if it has spent
half its time waiting for a process to start. All jobs are answered with 503 if a process dies
before it has loaded its model. Tested: a real process, killed, stopped, cancelled, closed.
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
from headwise.serving.work.admission import AdmissionControl
from headwise.serving.work.bundle_files import BundleFiles
from headwise.serving.work.jobs import Job, JobPart
from headwise.serving.work.process_handle import ProcessHandle, start_process
from headwise.serving.work.search import EncodedSentence, Search
from headwise.serving.work.worker import CLOSE_SECONDS, Worker, WorkerDied
from headwise.tasks.translation.translator import Translator

RESTART_SECONDS = 1.0
"""Between the death of a process and the start of the next; doubled after each process that could
not start."""
MAX_DOUBLINGS = 5
START_SECONDS = 5
"""`Retry-After` of a request that came while the model was being loaded."""

logger = logging.getLogger(__name__)


class WorkerProcessError(RuntimeError):
    """A bug in the worker process; only the type of the exception is known."""


class ProcessWorker(Worker):
    """A worker with a process beside its thread."""

    def __init__(
        self, name: str, translator: Translator, files: BundleFiles, *, precision: str = "auto"
    ) -> None:
        super().__init__(name)
        self._translator, self._files = translator, files
        words = (
            str(files.bundle),
            precision,
            str(torch.get_num_threads()),
            files.manifest,
            json.dumps(files.descriptors),
        )
        self._command = child_command("headwise.serving.work.worker_process", *words)
        self._process: ProcessHandle | None = None
        self._process_admission = AdmissionControl()
        self._jobs: dict[int, Job] = {}
        self._unsent: dict[int, None] = {}
        """Jobs that wait for room in the pipe, oldest first."""
        self._cancelled: list[int] = []
        """Cancelled jobs that the process has and has not been told about, for want of room."""
        self._num_failed_starts = 0
        self._retried: set[int] = set()
        self._last_id = 0
        self._counts = {"batches": 0, "parts": 0, "waiting": 0}
        self._ended = asyncio.Event()
        self._restart_timer: asyncio.TimerHandle | None = None

    @property
    def is_alive(self) -> bool:
        return super().is_alive and self._process is not None and self._process.is_answering

    def is_ready_for(self, parts: Sequence[JobPart]) -> bool:
        return self.is_alive if runs_in_process(parts) else super().is_alive

    def admission_for(self, parts: Sequence[JobPart]) -> AdmissionControl:
        """The process and the thread compute independently."""
        return self._process_admission if runs_in_process(parts) else self.admission

    @property
    def seconds(self) -> float:
        return max(self.admission.seconds, self._process_admission.seconds)

    @property
    def num_waiting(self) -> int:
        return super().num_waiting + self._counts["waiting"] + len(self._unsent)

    @property
    def resident_bytes(self) -> int:
        """Memory of the process."""
        return 0 if self._process is None else self._process.resident_bytes

    async def start_process(self) -> None:
        """Start the process; jobs put before it has loaded its model wait in the pipe."""
        process = await start_process(
            self._command, self, files=list(self._files.descriptors.values())
        )
        if process.has_ended:
            return
        self._process = process
        if self._is_closed:  # closed while it was being started
            process.kill()
        self.on_writable()

    async def stop_process(self) -> None:
        """End the process; what it has is finished by now, or given up."""
        self._is_closed = True
        if self._restart_timer is not None:
            self._restart_timer.cancel()
        if self._process is None:
            return
        self._ended.clear()
        self._process.end_input()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), CLOSE_SECONDS)
        if self._process is not None:
            self._process.kill()
            await self._ended.wait()

    def put(self, job: Job) -> None:
        if not runs_in_process(job.parts):
            super().put(job)
        elif self._is_closed or self._num_failed_starts:
            job.fail(WorkerDied())
        else:
            self._last_id += 1
            number = self._last_id
            self._jobs[number] = job
            job.on_cancel = lambda: self._cancel(number)
            self._unsent[number] = None
            self._limit_start_wait(number)
            self.on_writable()

    @property
    def _has_started(self) -> bool:
        return self._process is not None and self._process.has_started

    def _limit_start_wait(self, number: int) -> None:
        """A process may take half of a job's remaining time to start; the other half is for the
        client to ask another server.
        """
        if not self._has_started:
            seconds = (self._jobs[number].deadline - monotonic()) / 2
            asyncio.get_running_loop().call_later(seconds, self._refuse_if_starting, number)

    def _refuse_if_starting(self, number: int) -> None:
        if number in self._jobs and not self._has_started:
            job = self._jobs[number]
            self._cancel(number)
            job.fail(loading_refusal())

    def on_writable(self) -> None:
        """Send what waits, while there is a process and room in its pipe."""
        while self._process is not None and self._process.is_writable and self._cancelled:
            self._process.write({"cancel": self._cancelled.pop()})
        while self._process is not None and self._process.is_writable and self._unsent:
            number = next(iter(self._unsent))
            del self._unsent[number]
            self._process.write(self._job_frame(number))

    def _job_frame(self, number: int) -> dict[str, Any]:
        job = self._jobs[number]
        search: Search = job.parts[0].run  # type: ignore[assignment]
        sentences: list[EncodedSentence] = [part.argument for part in job.parts]
        return {
            "job": number,
            "seconds": job.deadline - monotonic(),
            "rank": job.rank - monotonic(),
            "settings": settings_json(search.settings),
            "sentences": [[one.ids, one.prefix, one.number] for one in sentences],
        }

    def _cancel(self, number: int) -> None:
        if self._jobs.pop(number, None) is None:
            return
        self._retried.discard(number)
        if number in self._unsent:
            del self._unsent[number]
        else:
            self._cancelled.append(number)
            self.on_writable()

    def on_frame(self, frame: dict[str, Any]) -> None:
        """Handle a message of the process."""
        if "started" in frame:
            self._num_failed_starts = 0
            return
        if "batches" in frame:
            self.num_batches += frame["batches"] - self._counts["batches"]
            self.num_parts += frame["parts"] - self._counts["parts"]
            self._counts = frame
            return
        job = self._jobs.get(frame["job"])
        if job is None:
            return
        if "found" in frame:
            # The process does not send the log-probabilities of single tokens: no route needs them.
            found = [
                self._translator.write_down(
                    Hypothesis(tokens, total, score, token_log_probabilities=(), finished=finished)
                )
                for tokens, total, score, finished in frame["found"]
            ]
            job.deliver(job.parts[frame["index"]], tuple(found), seconds=frame["seconds"])
        elif "error" in frame:
            job.fail(HeadwiseError(*frame["error"]))
        else:
            job.fail(WorkerProcessError(frame["bug"]))
        if job.future.done():
            del self._jobs[frame["job"]]
            self._retried.discard(frame["job"])

    def on_exit(self) -> None:
        """The process has ended: retry its jobs or fail them, and restart it unless closed."""
        self._num_failed_starts += self._process is None or not self._process.has_started
        self._process = None
        self._ended.set()
        self._counts = {"batches": 0, "parts": 0, "waiting": 0}
        self._cancelled = []
        give_up = self._is_closed or self._num_failed_starts
        waiting = {number: job for number, job in self._jobs.items() if not job.is_over}
        self._jobs = (
            {} if give_up else {n: job for n, job in waiting.items() if n not in self._retried}
        )
        self._retried = set(self._jobs)
        self._unsent = dict.fromkeys(self._jobs)
        for number in self._jobs:
            self._limit_start_wait(number)
        for number in waiting.keys() - self._jobs.keys():
            waiting[number].fail(
                WorkerDied("the worker process has ended; its own message, if any, stands above")
            )
        if not self._is_closed:
            self.num_restarts += 1
            logger.error("the process of worker %s has ended and is being restarted", self.name)
            seconds = RESTART_SECONDS * 2 ** min(self._num_failed_starts, MAX_DOUBLINGS)
            loop = asyncio.get_running_loop()
            self._restart_timer = loop.call_later(
                seconds, lambda: asyncio.ensure_future(self._restart())
            )

    async def _restart(self) -> None:
        try:
            await self.start_process()
        except OSError:  # no memory or no open files at the moment
            self.on_exit()


def loading_refusal() -> Refusal:
    """For a request that cannot wait until the model is loaded."""
    en, zh = "the model is being loaded; try again soon", "模型正在载入；请稍后再试"
    return Refusal(503, "starting", en=en, zh=zh, retry_after=START_SECONDS)


def runs_in_process(parts: Sequence[JobPart]) -> bool:
    """Sentences do; functions and searches whose steps are watched run in the thread."""
    return bool(parts) and all(
        type(part.run) is Search and part.run.watch is None for part in parts
    )


@lru_cache(256)
def settings_json(settings: DecodingSettings) -> str:
    return settings.model_dump_json()
