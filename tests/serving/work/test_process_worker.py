"""A process that searches: the same answers, and what happens when clients leave, it fails, dies,
or is told to end."""

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
from headwise.serving.work.bundle_files import HeldFiles
from headwise.serving.work.jobs import Order, Part
from headwise.serving.work.loaded_models import LoadedModel
from headwise.serving.work.process_worker import WorkerApart
from headwise.serving.work.search import Search, Sentence
from headwise.serving.work.translation_jobs import prepare
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


def order_of(models: dict[str, LoadedModel], texts: list[str], settings: DecodingSettings) -> Order:
    prepared = prepare(models["tiny"].value, texts, settings, split=False)
    return Order(prepared.parts, deadline=time.monotonic() + 60)


async def answer(order: Order) -> list[Any]:
    return await asyncio.wait_for(asyncio.wrap_future(order.future), 60)


async def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        await asyncio.sleep(0.01)


def with_process(
    models: dict[str, LoadedModel], scene: Callable[[WorkerApart], Awaitable[None]]
) -> None:
    """The scene, with a process that is at work and is told to end afterwards."""

    async def play() -> None:
        worker = WorkerApart("tiny", models["tiny"].value, HeldFiles(BUNDLE), precision="fp32")
        worker.start()
        await worker.open()
        pid = worker._process.pid  # type: ignore[union-attr]
        try:
            await scene(worker)
        finally:
            await worker.shut()
            worker.close()
        assert not worker.is_alive
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    run_alone(play())


def test_it_says_what_the_library_says_and_drops_who_left(models: dict[str, LoadedModel]) -> None:
    translator = models["tiny"].value

    async def scene(worker: WorkerApart) -> None:
        for overrides in SEARCHES:
            settings = translator.settings(overrides)
            orders = [order_of(models, [text], settings) for text in SENTENCES]
            for order in orders:
                worker.put(order)
            expected = translator(SENTENCES, settings)
            for order, theirs in zip(orders, expected, strict=True):
                (ours,) = await answer(order)
                assert [one.text for one in ours] == [one.text for one in theirs.n_best]
                assert [one.score for one in ours] == pytest.approx(
                    [one.score for one in theirs.n_best], abs=1e-4
                )
        assert worker.num_parts == len(SEARCHES) * len(SENTENCES)
        # What is no sentence stays here.
        here = Order([Part(run=lambda parts: [os.getpid()])], deadline=time.monotonic() + 60)
        worker.put(here)
        assert await answer(here) == [os.getpid()]
        # Whoever leaves is forgotten at once, and by the process, too: a search that never ends
        # would hold up the next.
        endless = translator.settings(["kind=greedy", "max_length=60000", "min_length=59999"])
        gone = order_of(models, SENTENCES[:2], endless)
        worker.put(gone)
        await asyncio.sleep(0.05)
        gone.leave()
        assert not worker._orders
        order = order_of(models, SENTENCES[:1], translator.settings(["kind=beam"]))
        worker.put(order)
        await answer(order)

    with_process(models, scene)


@pytest.mark.prove
def test_what_fails_there_is_told_here(models: dict[str, LoadedModel]) -> None:
    translator = models["tiny"].value
    greedy = translator.settings(["kind=greedy"])

    async def scene(worker: WorkerApart) -> None:
        wish = Sentence((4, 5), (2,), 0)
        refused = Order(
            [Part(Search(translator, greedy), argument=wish, key=1)], deadline=time.monotonic() + 60
        )
        broken = Sentence((4, 10**9), (), 0)
        bug = Order(
            [Part(Search(translator, greedy), argument=broken, key=1)],
            deadline=time.monotonic() + 60,
        )
        settings = translator.settings(["kind=sampling", "seed=3"])
        impossible = Order(
            [Part(Search(translator, settings), argument=wish, key=1)],
            deadline=time.monotonic() + 60,
        )
        for order in (refused, bug, impossible):
            worker.put(order)
        with pytest.raises(HeadwiseError, match="special token 2; only ordinary tokens"):
            await answer(impossible)
        with pytest.raises(RuntimeError, match="IndexError"):
            await answer(bug)
        fine = order_of(models, SENTENCES[:1], greedy)
        worker.put(fine)
        await answer(fine)

    with_process(models, scene)


@pytest.mark.prove
def test_a_process_that_is_killed_is_started_again_with_what_it_had(
    models: dict[str, LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """S6."""
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0.2)
    translator = models["tiny"].value
    endless = translator.settings(["kind=greedy", "max_length=60000", "min_length=59999"])

    async def scene(worker: WorkerApart) -> None:
        first = order_of(models, SENTENCES[:1], translator.settings(["kind=greedy"]))
        worker.put(first)
        await answer(first)
        order = order_of(models, SENTENCES[:3], endless)
        worker.put(order)
        assert worker._process is not None
        os.kill(worker._process.pid, signal.SIGTERM)  # is for the server to hear
        await asyncio.sleep(0.1)
        assert worker.is_alive
        os.kill(worker._process.pid, signal.SIGKILL)
        # What it had is tried once more, and who comes meanwhile waits.
        await wait_for(lambda: not worker.is_alive)
        meanwhile = order_of(models, SENTENCES[:1], endless)
        worker.put(meanwhile)
        await wait_for(lambda: worker.is_alive)
        assert worker.num_restarts == 1
        assert not order.future.done()
        os.kill(worker._process.pid, signal.SIGKILL)
        with pytest.raises(WorkerDied):
            await answer(order)
        meanwhile.leave()
        orders = [
            order_of(models, [text], translator.settings(["kind=beam"])) for text in SENTENCES
        ]
        for one in orders:
            worker.put(one)
        await wait_for(lambda: worker.is_alive)
        os.kill(worker._process.pid, signal.SIGKILL)
        for one in orders:
            await answer(one)
        assert worker.num_restarts in (2, 3)  # the last one may have been quick

    with_process(models, scene)


def test_a_replaced_model_directory_does_not_change_the_model(
    models: dict[str, LoadedModel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`train --resume` replaces `model/`; a process that must start again later still finds what
    the server began with."""
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0.05)
    bundle = tmp_path / "model"
    shutil.copytree(BUNDLE, bundle)
    held = HeldFiles(bundle)
    shutil.rmtree(bundle)
    bundle.mkdir()
    (bundle / "MANIFEST.json").write_text("{}", encoding="utf-8")
    translator = models["tiny"].value
    greedy = translator.settings(["kind=greedy"])

    async def play() -> None:
        worker = WorkerApart("tiny", translator, held, precision="fp32")
        worker.start()
        await worker.open()
        order = order_of(models, SENTENCES, greedy)
        worker.put(order)
        found = [ours[0].text for ours in await answer(order)]
        assert found == [theirs.text for theirs in translator(SENTENCES, greedy)]
        await worker.shut()
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
        worker = WorkerApart("tiny", models["tiny"].value, HeldFiles(bundle))
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
        order = order_of(models, SENTENCES[:1], models["tiny"].value.settings(["kind=greedy"]))
        await worker.open()
        worker.put(order)
        with pytest.raises(WorkerDied):
            await answer(order)
        assert not worker.is_alive
        await worker.shut()
        worker.close()

    run_alone(play())
    said = capfd.readouterr().err
    assert "Traceback" not in said
    assert {"damaged": "it is damaged", "talks": ""}[what] in said
