"""One thread, many requests: what shares a batch, what is dropped, what a failure costs."""

import ctypes
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from headwise.serving.work import worker as module
from headwise.serving.work.jobs import Job, JobAbandoned, JobPart, JoinMore
from headwise.serving.work.worker import (
    MAX_BATCH_SENTENCES,
    MAX_BATCH_TOKENS,
    Worker,
    WorkerDied,
    choose_batch,
)

LATER = 1e12


@pytest.fixture
def worker() -> Iterator[Worker]:
    found = Worker("test")
    found.start()
    yield found
    found.close()


class Recorder:
    """Answers parts with their argument and records the batches."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []

    def __call__(self, parts: Sequence[JobPart]) -> list[Any]:
        self.batches.append([part.argument for part in parts])
        return [part.argument for part in parts]


def hold(worker: Worker) -> threading.Event:
    """Keeps the worker busy until the event is set, and waits until it is."""
    began, go = threading.Event(), threading.Event()

    def wait(parts: Sequence[JobPart]) -> list[None]:
        began.set()
        go.wait(10)
        return [None]

    worker.put(Job([JobPart(run=wait)], deadline=LATER))
    assert began.wait(10)
    return go


def test_what_waits_together_is_answered_together(worker: Worker) -> None:
    run = Recorder()
    go = hold(worker)
    jobs = [
        Job([JobPart(run=run, argument=(n, p), key="a") for p in range(3)], deadline=LATER)
        for n in range(5)
    ]
    other = Job([JobPart(run=run, argument="other", key="b")], deadline=LATER)
    alone = Job([JobPart(run=run, argument="alone")], deadline=LATER)
    for job in (*jobs[:2], other, alone, *jobs[2:]):
        worker.put(job)
    go.set()
    assert [job.future.result(10) for job in jobs] == [[(n, p) for p in range(3)] for n in range(5)]
    assert other.future.result(10) == ["other"]
    assert alone.future.result(10) == ["alone"]
    assert sorted(map(len, run.batches)) == [1, 1, 15]
    assert (worker.num_batches, worker.num_parts) == (4, 18)


def test_an_order_of_nothing_is_done() -> None:
    assert Job([], deadline=LATER).future.result(0) == []


def test_a_batch_holds_the_oldest_and_its_nearest_within_the_budget() -> None:
    parts = [
        JobPart(run=Recorder(), key=1, num_tokens=num_tokens) for num_tokens in (10, *range(1, 200))
    ]
    batch = choose_batch(parts)
    assert batch[0] is parts[0]
    assert len(batch) == MAX_BATCH_SENTENCES
    assert max(abs(part.num_tokens - 10) for part in batch) < MAX_BATCH_SENTENCES
    long = [JobPart(run=Recorder(), key=1, num_tokens=600) for _ in range(40)]
    assert len(choose_batch(long)) == MAX_BATCH_TOKENS // 600
    assert choose_batch([]) == []


def test_who_left_or_is_too_late_is_not_worked_for(worker: Worker) -> None:
    run = Recorder()
    go = hold(worker)
    gone, late, kept = (
        Job([JobPart(run=run, argument=n, key=1)], deadline=LATER) for n in range(3)
    )
    late.deadline = time.monotonic() - 1
    for job in (gone, late, kept):
        worker.put(job)
    gone.cancel()
    go.set()
    assert kept.future.result(10) == [2]
    assert run.batches == [[2]]
    assert not gone.future.done()


def test_one_bad_request_does_not_spoil_the_others(worker: Worker) -> None:
    def run(parts: Sequence[JobPart]) -> list[Any]:
        if any(part.argument == "bad" for part in parts):
            raise ValueError("bad")
        return [part.argument for part in parts]

    assert_only_the_bad_one_fails(worker, lambda word: JobPart(run=run, argument=word, key=1))


def assert_only_the_bad_one_fails(worker: Worker, make: Callable[[str], JobPart]) -> None:
    go = hold(worker)
    jobs = [Job([make(word)], deadline=LATER) for word in ("a", "bad", "b")]
    for job in jobs:
        worker.put(job)
    go.set()
    assert jobs[0].future.result(10) == ["a"]
    assert jobs[2].future.result(10) == ["b"]
    with pytest.raises(ValueError, match="bad"):
        jobs[1].future.result(10)


def test_abandoned_work_ends_quietly(worker: Worker) -> None:
    def run(parts: Sequence[JobPart]) -> list[Any]:
        raise JobAbandoned

    worker.put(Job([JobPart(run=run)], deadline=LATER))
    job = Job([JobPart(run=Recorder(), argument=1)], deadline=LATER)
    worker.put(job)
    assert job.future.result(10) == [1]


@pytest.mark.parametrize(
    "number", [0, *(pytest.param(n, marks=pytest.mark.prove) for n in range(1, 20))]
)
def test_a_killed_worker_costs_the_batch_at_hand_and_nothing_else(
    worker: Worker, number: int
) -> None:
    """S6: killed in the middle of 64 requests; 20 times at full length."""
    time.sleep(0.003 * number)
    began = threading.Event()

    def spin(parts: Sequence[JobPart]) -> list[Any]:
        began.set()
        until = time.monotonic() + 10
        while time.monotonic() < until:
            time.sleep(0.001)
        return [None]

    victim = Job([JobPart(run=spin)], deadline=LATER)
    worker.put(victim)
    assert began.wait(10)
    run = Recorder()
    others = [Job([JobPart(run=run, argument=n, key=1)], deadline=LATER) for n in range(63)]
    for job in others:
        worker.put(job)
    start = time.monotonic()
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(worker._thread.ident or 0), ctypes.py_object(SystemExit)
    )
    with pytest.raises(WorkerDied):
        victim.future.result(10)
    assert [job.future.result(10) for job in others] == [[n] for n in range(63)]
    assert time.monotonic() - start < 5
    assert worker.is_alive
    assert worker.num_restarts == 1


def test_closing_refuses_what_waits() -> None:
    found = Worker("closing")
    found.start()
    go = hold(found)
    waiting = Job([JobPart(run=Recorder())], deadline=LATER)
    found.put(waiting)
    threading.Timer(0.05, go.set).start()
    found.close()
    # It was taken up before the closing, or refused: never left waiting.
    assert waiting.future.done()


def test_the_thread_lingers_for_those_it_answered_before(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LINGER_SECONDS", 5.0)
    monkeypatch.setattr(module, "LINGER_GAP", 5.0)
    run = Recorder()
    go = hold(worker)
    first = [Job([JobPart(run=run, argument=n, key=1)], deadline=LATER) for n in range(4)]
    for job in first:
        worker.put(job)
    go.set()
    for job in first:
        job.future.result(10)
    worker._last_seconds = 5.0
    second = [Job([JobPart(run=run, argument=n, key=1)], deadline=LATER) for n in range(4)]
    for job in second:
        worker.put(job)
        time.sleep(0.01)
    for job in second:
        job.future.result(10)
    assert [len(batch) for batch in run.batches] == [4, 4]


def test_who_was_answered_early_is_not_answered_again(worker: Worker) -> None:
    """A batch that answers one part, fails, and is answered part by part."""

    def run(parts: Sequence[JobPart]) -> list[Any]:
        if len(parts) > 1 and parts[0].job is not None:
            parts[0].job.deliver(parts[0], "early")
            raise ValueError
        return ["late"] * len(parts)

    go = hold(worker)
    job = Job([JobPart(run=run, key=1) for _ in range(3)], deadline=LATER)
    worker.put(job)
    go.set()
    assert job.future.result(10) == ["early", "late", "late"]


class Continuous:
    """A continuous batch of one step a part: answers its parts and asks for more."""

    def __init__(self) -> None:
        self.rounds: list[list[Any]] = []

    def __call__(self, parts: Sequence[JobPart]) -> list[Any]:
        if any(part.argument == "bad" for part in parts):
            raise ValueError("bad")
        return [part.argument for part in parts]

    def run_continuously(self, parts: Sequence[JobPart], more: JoinMore) -> None:
        here = list(parts)
        while here:
            self.rounds.append([part.argument for part in here])
            for part in here:
                if part.argument == "bad":
                    raise ValueError("bad")
            time.sleep(0.01)
            came = more(len(here))
            for part in here:
                assert part.job is not None
                part.job.deliver(part, part.argument)
            here = list(came)


def test_who_comes_meanwhile_joins_unless_another_waits_longer(worker: Worker) -> None:
    run = Continuous()
    go = hold(worker)
    jobs = [Job([JobPart(run, run.run_continuously, n, key=1)], deadline=LATER) for n in range(3)]
    other = Job([JobPart(run=Recorder(), argument="other", key=2)], deadline=LATER)
    last = Job([JobPart(run, run.run_continuously, 3, key=1)], deadline=LATER)
    for job in (*jobs, other, last):
        worker.put(job)
    go.set()
    assert [job.future.result(10) for job in (*jobs, other, last)] == [
        [0],
        [1],
        [2],
        ["other"],
        [3],
    ]
    assert run.rounds[0] == [0, 1, 2, 3]
    late = [
        Job([JobPart(run, run.run_continuously, n, key=1)], deadline=LATER) for n in range(4, 40)
    ]
    for job in late:
        worker.put(job)
        time.sleep(0.001)
    assert [job.future.result(10) for job in late] == [[n] for n in range(4, 40)]
    assert worker.num_batches < 40


def test_one_bad_sentence_does_not_spoil_a_flow(worker: Worker) -> None:
    run = Continuous()
    assert_only_the_bad_one_fails(
        worker, lambda word: JobPart(run, run.run_continuously, word, key=1)
    )


def test_a_flow_takes_no_more_than_a_batch_holds() -> None:
    beside = [JobPart(run=Recorder(), key=1, num_tokens=100) for _ in range(60)]
    waiting = [JobPart(run=Recorder(), key=1, num_tokens=5) for _ in range(30)]
    assert len(choose_batch(waiting, beside=beside)) == MAX_BATCH_SENTENCES - 60
    long = [JobPart(run=Recorder(), key=1, num_tokens=MAX_BATCH_TOKENS // 61 + 1)]
    assert not choose_batch([*long, *waiting], beside=beside)
