"""A worker process: the same translations, and what happens when jobs are cancelled, and when it
fails, dies or is stopped.
"""

import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from headwise.decoding.choices import DecodingSettings
from headwise.errors import HeadwiseError
from headwise.serving.work import process_worker as module
from headwise.serving.work.bundle_files import BundleFiles
from headwise.serving.work.jobs import Job, JobPart
from headwise.serving.work.loaded_models import LoadedModel
from headwise.serving.work.process_worker import ProcessWorker
from headwise.serving.work.search import EncodedSentence, Search
from headwise.serving.work.translation_jobs import prepare_texts
from headwise.serving.work.worker import WorkerDied
from tests.serving.api.test_translate import KNOWN
from tests.serving.conftest import BUNDLE
from tests.serving.event_loops import run_alone

SENTENCES = [line.split("\t")[0] for line in KNOWN][:20]
SEARCHES = (
    ["kind=greedy"],
    ["kind=beam", "size=3", "num_best=2"],
    ["kind=greedy", "no_repeat_ngrams=3"],
)


def job_of(models: dict[str, LoadedModel], texts: list[str], settings: DecodingSettings) -> Job:
    prepared = prepare_texts(models["tiny"].value, texts, settings, split=False)
    return Job(prepared.parts, deadline=time.monotonic() + 60)


async def answer(job: Job) -> list[Any]:
    return await asyncio.wait_for(asyncio.wrap_future(job.future), 60)


async def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        await asyncio.sleep(0.01)


def with_process(
    models: dict[str, LoadedModel], scene: Callable[[ProcessWorker], Awaitable[None]]
) -> None:
    """Run the scene with a started process, which is stopped afterwards."""

    async def play() -> None:
        worker = ProcessWorker("tiny", models["tiny"].value, BundleFiles(BUNDLE), precision="fp32")
        worker.start()
        await worker.start_process()
        pid = worker._process.pid  # type: ignore[union-attr]
        try:
            await scene(worker)
        finally:
            await worker.stop_process()
            worker.close()
        assert not worker.is_alive
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    run_alone(play())


def test_it_says_what_the_library_says_and_drops_who_left(models: dict[str, LoadedModel]) -> None:
    translator = models["tiny"].value

    async def scene(worker: ProcessWorker) -> None:
        for overrides in SEARCHES:
            settings = translator.settings(overrides)
            jobs = [job_of(models, [text], settings) for text in SENTENCES]
            for job in jobs:
                worker.put(job)
            expected = translator(SENTENCES, settings)
            for job, theirs in zip(jobs, expected, strict=True):
                (ours,) = await answer(job)
                assert [one.text for one in ours] == [one.text for one in theirs.n_best]
                assert [one.score for one in ours] == pytest.approx(
                    [one.score for one in theirs.n_best], abs=1e-4
                )
        assert worker.num_parts == len(SEARCHES) * len(SENTENCES)
        # What is not a sentence is computed in this process.
        here = Job([JobPart(run=lambda parts: [os.getpid()])], deadline=time.monotonic() + 60)
        worker.put(here)
        assert await answer(here) == [os.getpid()]
        # A cancelled job is dropped at once, by the process too: an endless search would hold up
        # the next.
        endless = translator.settings(["kind=greedy", "max_length=60000", "min_length=59999"])
        gone = job_of(models, SENTENCES[:2], endless)
        worker.put(gone)
        await asyncio.sleep(0.05)
        gone.cancel()
        assert not worker._jobs
        job = job_of(models, SENTENCES[:1], translator.settings(["kind=beam"]))
        worker.put(job)
        await answer(job)

    with_process(models, scene)


@pytest.mark.prove
def test_what_fails_there_is_told_here(models: dict[str, LoadedModel]) -> None:
    translator = models["tiny"].value
    greedy = translator.settings(["kind=greedy"])

    async def scene(worker: ProcessWorker) -> None:
        wish = EncodedSentence((4, 5), (2,), 0)
        refused = Job(
            [JobPart(Search(translator, greedy), argument=wish, key=1)],
            deadline=time.monotonic() + 60,
        )
        broken = EncodedSentence((4, 10**9), (), 0)
        bug = Job(
            [JobPart(Search(translator, greedy), argument=broken, key=1)],
            deadline=time.monotonic() + 60,
        )
        settings = translator.settings(["kind=sampling", "seed=3"])
        impossible = Job(
            [JobPart(Search(translator, settings), argument=wish, key=1)],
            deadline=time.monotonic() + 60,
        )
        for job in (refused, bug, impossible):
            worker.put(job)
        with pytest.raises(HeadwiseError, match="special token 2; only ordinary tokens"):
            await answer(impossible)
        with pytest.raises(RuntimeError, match="IndexError"):
            await answer(bug)
        fine = job_of(models, SENTENCES[:1], greedy)
        worker.put(fine)
        await answer(fine)

    with_process(models, scene)


@pytest.mark.prove
def test_a_process_that_is_killed_is_started_again_with_what_it_had(
    models: dict[str, LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """S6."""
    monkeypatch.setattr(module, "RESTART_SECONDS", 0.2)
    translator = models["tiny"].value
    endless = translator.settings(["kind=greedy", "max_length=60000", "min_length=59999"])

    async def scene(worker: ProcessWorker) -> None:
        first = job_of(models, SENTENCES[:1], translator.settings(["kind=greedy"]))
        worker.put(first)
        await answer(first)
        job = job_of(models, SENTENCES[:3], endless)
        worker.put(job)
        assert worker._process is not None
        os.kill(worker._process.pid, signal.SIGTERM)  # is meant for the server
        await asyncio.sleep(0.1)
        assert worker.is_alive
        os.kill(worker._process.pid, signal.SIGKILL)
        # Its jobs are retried, and jobs that come meanwhile wait.
        await wait_for(lambda: not worker.is_alive)
        meanwhile = job_of(models, SENTENCES[:1], endless)
        worker.put(meanwhile)
        await wait_for(lambda: worker.is_alive)
        assert worker.num_restarts == 1
        assert not job.future.done()
        os.kill(worker._process.pid, signal.SIGKILL)
        with pytest.raises(WorkerDied):
            await answer(job)
        meanwhile.cancel()
        jobs = [job_of(models, [text], translator.settings(["kind=beam"])) for text in SENTENCES]
        for one in jobs:
            worker.put(one)
        await wait_for(lambda: worker.is_alive)
        os.kill(worker._process.pid, signal.SIGKILL)
        for one in jobs:
            await answer(one)
        assert worker.num_restarts in (2, 3)  # the last one may have been quick

    with_process(models, scene)


def test_a_replaced_model_directory_does_not_change_the_model(
    models: dict[str, LoadedModel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`train --resume` replaces `model/`; a process that must start again later still finds what
    the server began with."""
    monkeypatch.setattr(module, "RESTART_SECONDS", 0.05)
    bundle = tmp_path / "model"
    shutil.copytree(BUNDLE, bundle)
    files = BundleFiles(bundle)
    shutil.rmtree(bundle)
    bundle.mkdir()
    (bundle / "MANIFEST.json").write_text("{}", encoding="utf-8")
    translator = models["tiny"].value
    greedy = translator.settings(["kind=greedy"])

    async def play() -> None:
        worker = ProcessWorker("tiny", translator, files, precision="fp32")
        worker.start()
        await worker.start_process()
        job = job_of(models, SENTENCES, greedy)
        worker.put(job)
        found = [ours[0].text for ours in await answer(job)]
        assert found == [theirs.text for theirs in translator(SENTENCES, greedy)]
        await worker.stop_process()
        worker.close()

    run_alone(play())


@pytest.mark.prove
@pytest.mark.parametrize("what", ["damaged", "talks"])
def test_a_process_that_cannot_begin_is_told_of(
    models: dict[str, LoadedModel], tmp_path: Path, capfd: pytest.CaptureFixture[str], what: str
) -> None:
    bundle = tmp_path / "model"
    shutil.copytree(BUNDLE, bundle)

    async def play() -> None:
        worker = ProcessWorker("tiny", models["tiny"].value, BundleFiles(bundle))
        if what == "damaged":
            with (bundle / "weights.safetensors").open("r+b") as writer:
                writer.truncate(1_000)
        else:
            worker._command = [
                sys.executable,
                "-c",
                "print('x' * 100, flush=True); import time; time.sleep(60)",
            ]
        worker.start()
        job = job_of(models, SENTENCES[:1], models["tiny"].value.settings(["kind=greedy"]))
        await worker.start_process()
        worker.put(job)
        with pytest.raises(WorkerDied):
            await answer(job)
        assert not worker.is_alive
        await worker.stop_process()
        worker.close()

    run_alone(play())
    said = capfd.readouterr().err
    assert "Traceback" not in said
    assert {"damaged": "it is damaged", "talks": ""}[what] in said
