"""Short work runs first, even in the middle of long work; and each request is charged for its own
time.
"""

import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from headwise.serving.work.jobs import Job, JobAbandoned, JobPart, should_stop
from headwise.serving.work.worker import Worker
from tests.serving.work.test_worker import LATER, hold, worker

__all__ = ["worker"]


class Stepping:
    """A search of many steps that records the order of computation."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.began, self.go = threading.Event(), threading.Event()

    def __call__(self, parts: Sequence[JobPart]) -> list[Any]:
        if parts[0].argument == "long":
            self.began.set()
            self.go.wait(10)
            for _ in range(3):
                if should_stop(parts):
                    raise JobAbandoned
        self.done += [part.argument for part in parts]
        return [part.argument for part in parts]


def test_short_work_is_done_in_the_midst_of_long_work(worker: Worker) -> None:
    run, now = Stepping(), time.monotonic()
    learnt: dict[str, float] = {}

    def job(name: str, rank: float, *, fails: bool = False) -> Job:
        found = Job(
            [JobPart(run=(lambda parts: 1 / 0) if fails else run, argument=name)],
            deadline=LATER,
            rank=rank,
        )  # type: ignore[arg-type, return-value]
        found.on_answer = lambda part, seconds: learnt.__setitem__(part.argument, seconds)
        return found

    long = job("long", now + 100)
    worker.put(long)
    assert run.began.wait(10)
    bad = job("bad", now + 1, fails=True)
    waiting = [job("like it", now + 99.5), job("second", now + 2), job("first", now)]
    for one in (bad, *waiting):
        worker.put(one)
    time.sleep(0.2)
    run.go.set()
    assert long.future.result(10) == ["long"]
    assert [one.future.result(10) for one in waiting] == [["like it"], ["second"], ["first"]]
    with pytest.raises(ZeroDivisionError):
        bad.future.result(10)
    assert run.done == ["first", "second", "long", "like it"]
    # Each is charged for its own time.
    assert learnt["long"] >= 0.2
    assert max(learnt["first"], learnt["second"]) < 0.2


def test_a_batch_is_paid_for_by_all_of_its_answers(worker: Worker) -> None:
    learnt: list[float] = []

    def run(parts: Sequence[JobPart]) -> list[Any]:
        time.sleep(0.4)
        return list(parts)

    go = hold(worker)
    job = Job([JobPart(run=run, key=1) for _ in range(4)], deadline=LATER)
    job.on_answer = lambda part, seconds: learnt.append(seconds)
    worker.put(job)
    go.set()
    job.future.result(10)
    assert sum(learnt) >= 0.4
    assert learnt[0] == pytest.approx(sum(learnt) / 4, rel=0.2)
