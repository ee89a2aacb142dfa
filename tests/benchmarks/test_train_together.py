"""Commands of a plan wait for each other, share the machine, are stopped in time and go on."""

import signal
from pathlib import Path
from typing import Any

import pytest
from benchmarks.train_together import Job, advance, read_plan, report, restore, stop

PLAN = """
first: {command: "end 0"}
bad: {command: "end 1"}
second: {command: "train small --run {runs}/second", after: [first]}
never: {command: "end 0", after: [bad]}
"""


class _Process:
    """A command that has ended with a status, or waits for SIGTERM and ends with 143."""

    def __init__(self, returncode: int | None) -> None:
        self.returncode = returncode

    def poll(self) -> int | None:
        return self.returncode

    def send_signal(self, number: int) -> None:
        assert number == signal.SIGTERM
        self.returncode = 143

    def wait(self, timeout: float) -> int:
        assert self.returncode is not None
        return self.returncode


def _launch(job: Job, runs: Path) -> Any:
    """`end N` ends with status N; a training writes its checkpoint and goes on."""
    if job.words[0] == "end":
        return _Process(int(job.words[1]))
    (runs / job.name).mkdir()
    (runs / job.name / "LATEST").touch()
    return _Process(None)


def _run(runs: Path, *, at_once: int) -> list[Job]:
    jobs = read_plan(PLAN, runs)
    for _ in range(5):
        assert advance(jobs, runs, at_once=at_once, launch=_launch)
    stop(jobs)
    return jobs


def test_commands_wait_for_others_and_are_stopped_when_the_time_is_over(tmp_path: Path) -> None:
    jobs = _run(tmp_path, at_once=1)
    assert [job.state for job in jobs] == ["finished", "failed", "stopped", "waiting"]


def test_a_second_call_resumes_what_was_stopped_and_repeats_nothing(tmp_path: Path) -> None:
    jobs = _run(tmp_path, at_once=3)
    again = read_plan(PLAN, tmp_path)
    restore(again, report(jobs))
    assert [job.state for job in again] == ["finished", "waiting", "waiting", "waiting"]
    assert again[2].words[-1] == "--resume"
    assert again[2].seconds == pytest.approx(jobs[2].seconds)


def test_a_plan_that_waits_for_what_comes_later_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"second: `after` names \['first'\]"):
        read_plan("second: {command: end 0, after: [first]}\nfirst: {command: end 0}", tmp_path)
