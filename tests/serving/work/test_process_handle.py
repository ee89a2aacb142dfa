"""A process that hangs, does not start, is idle or computes: when it is killed, and what clients
are told.
"""

import asyncio
import os
import signal
import time

import pytest

from headwise.serving.http.errors import Refusal
from headwise.serving.work import process_handle
from headwise.serving.work import process_worker as module
from headwise.serving.work.jobs import Job
from headwise.serving.work.loaded_models import LoadedModel
from headwise.serving.work.process_worker import ProcessWorker
from tests.serving.work.test_process_worker import (
    SENTENCES,
    answer,
    job_of,
    wait_for,
    with_process,
)


def test_a_process_that_hangs_is_killed_and_replaced(
    models: dict[str, LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped process neither answers nor computes: the next one answers its jobs, and jobs that
    come meanwhile use no memory.
    """
    monkeypatch.setattr(module, "RESTART_SECONDS", 0.05)
    monkeypatch.setattr(process_handle, "HEARTBEAT_SECONDS", 0.4)
    translator = models["tiny"].value
    greedy = translator.settings(["kind=greedy"])

    async def scene(worker: ProcessWorker) -> None:
        await wait_for(lambda: worker.is_alive)
        process = worker._process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        jobs = [job_of(models, [text], greedy) for text in SENTENCES]
        for job in jobs:
            worker.put(job)
        # Clients that come and leave again cost no memory, though nothing is read from the pipe.
        long = job_of(models, ["a b c d " * 60] * 100, greedy)
        for _ in range(200):
            passing = Job(long.parts, deadline=time.monotonic() + 60)
            worker.put(passing)
            passing.cancel()
        pipe = process._transport.get_pipe_transport(0)
        assert pipe.get_write_buffer_size() < 300_000
        assert len(worker._jobs) == len(jobs)
        await wait_for(lambda: not worker.is_alive)
        for job in jobs:
            await answer(job)
        assert worker.num_restarts == 1
        assert worker.is_alive

    with_process(models, scene)


@pytest.mark.parametrize("is_replacement", [False, True], ids=["first process", "replacement"])
def test_who_waits_for_a_process_that_does_not_begin_is_told_in_time(
    models: dict[str, LoadedModel], monkeypatch: pytest.MonkeyPatch, is_replacement: bool
) -> None:
    """Stopped while it loads its model: a job that has spent half its time waiting gets 503, not
    504.
    """
    monkeypatch.setattr(module, "RESTART_SECONDS", 0.05)
    greedy = models["tiny"].value.settings(["kind=greedy"])

    async def scene(worker: ProcessWorker) -> None:
        if is_replacement:
            await wait_for(lambda: worker.is_alive)
            os.kill(worker._process.pid, signal.SIGSTOP)  # type: ignore[union-attr]
        job = job_of(models, SENTENCES[:1], greedy)
        job.deadline = time.monotonic() + 4
        worker.put(job)
        if is_replacement:
            os.kill(worker._process.pid, signal.SIGKILL)  # type: ignore[union-attr]
            await wait_for(lambda: worker._process is None)
            await wait_for(lambda: worker._process is not None)
        process = worker._process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        with pytest.raises(Refusal, match="the model is being loaded; try again soon") as told:
            await answer(job)
        assert (told.value.status, told.value.retry_after) == (503, 5)
        assert job.deadline - 3 < time.monotonic() < job.deadline
        assert not worker._jobs
        # It is not killed for that: a large model may take longer to read than one request may
        # wait.
        os.kill(process.pid, signal.SIGCONT)
        later = job_of(models, SENTENCES[:1], greedy)
        worker.put(later)
        await answer(later)
        assert worker._process is process

    with_process(models, scene)


def test_a_process_that_is_idle_or_computes_is_left_alone(
    models: dict[str, LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_handle, "HEARTBEAT_SECONDS", 0.2)
    monkeypatch.setattr(process_handle, "IDLE_BEATS", 10)
    endless = models["tiny"].value.settings(["kind=greedy", "max_length=60000", "min_length=59999"])

    async def scene(worker: ProcessWorker) -> None:
        await wait_for(lambda: worker.is_alive)
        await asyncio.sleep(3)
        job = job_of(models, SENTENCES[:1], endless)
        worker.put(job)
        await asyncio.sleep(3)
        job.cancel()
        assert worker.num_restarts == 0
        assert worker.is_alive

    with_process(models, scene)
