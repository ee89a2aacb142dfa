"""Runs many commands side by side on one machine, within a given time, and collects their scores.

    python benchmarks/train_together.py PLAN.yaml RUNS [--minutes 9] [--at-once 4] [--threads 1]

A model of three million parameters leaves a large GPU idle while it compiles, validates and starts,
and with small batches also between its updates. So a few trainings side by side finish sooner than
one after the other. More than four gain nothing on an H200 if their updates are recorded and have
16,384 tokens or more: one such training fills it, and all would be late together. Put what matters
most first. A plan names each command, and what it waits for:

    teacher:
      command: train multi30k-en-de --run {runs}/teacher
    distilled:
      command: distil {runs}/teacher --output {runs}/distilled
      after: [teacher]
    ctc:
      command: train multi30k-en-de-ctc --run {runs}/ctc data.train={runs}/distilled/train
      after: [distilled]

`{runs}` stands for the directory RUNS. Commands are those of `headwise`, without that word. They
start in the order of the plan, as soon as what they wait for is finished and fewer than `--at-once`
are running; each writes RUNS/NAME.log. When the time is over, those that run get SIGTERM, and a
training saves its state. The same call goes on: a finished command is not repeated, and a training
that was stopped is resumed.

RUNS/together.json holds the state and seconds of every command, and the results of each finished
training. Times of commands that ran side by side say nothing about speed.

Tested by tests/benchmarks with commands that end, fail, wait and are stopped.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

SECONDS_TO_SAVE = 60
"""How long a command may take to end after SIGTERM before it is killed."""


@dataclass
class Job:
    """One command of a plan."""

    name: str
    words: list[str]
    after: tuple[str, ...] = ()
    state: str = "waiting"
    """waiting, running, finished, failed, or stopped (by the end of the time)."""
    seconds: float = 0.0
    """Over all calls."""
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    began: float = 0.0


def read_plan(text: str, runs: Path) -> list[Job]:
    """The commands of a plan; `after` may only name commands that stand before."""
    jobs: list[Job] = []
    try:
        plan = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SystemExit(f"the plan is not valid YAML: {error}") from None
    for name, entry in plan.items():
        after = tuple(entry.get("after", ()))
        unknown = set(after) - {job.name for job in jobs}
        if unknown:
            raise SystemExit(f"{name}: `after` names {sorted(unknown)}, which do not stand before")
        words = shlex.split(entry["command"].replace("{runs}", str(runs)))
        jobs.append(Job(name, words, after))
    return jobs


def restore(jobs: list[Job], before: Mapping[str, Any]) -> None:
    """What an earlier call has finished or stopped."""
    for job in jobs:
        entry = before.get(job.name, {})
        job.seconds = entry.get("seconds", 0.0)
        if entry.get("state") == "finished":
            job.state = "finished"
        run = run_of(job)
        if job.state != "finished" and run is not None and (run / "LATEST").exists():
            job.words.append("--resume")


def run_of(job: Job) -> Path | None:
    """The run directory of a training; None for other commands."""
    is_training = job.words[0] == "train" and "--run" in job.words
    return Path(job.words[job.words.index("--run") + 1]) if is_training else None


def run_all(
    jobs: list[Job],
    runs: Path,
    *,
    seconds: float,
    at_once: int,
    launch: Callable[[Job, Path], subprocess.Popen[bytes]],
) -> None:
    """Start what can start until all are done or the time is over; then stop the rest."""
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline and advance(jobs, runs, at_once=at_once, launch=launch):
            time.sleep(0.2)
    finally:
        stop(jobs)


def advance(
    jobs: list[Job],
    runs: Path,
    *,
    at_once: int,
    launch: Callable[[Job, Path], subprocess.Popen[bytes]],
) -> bool:
    """Note what has ended and start what can; whether anything is running."""
    for job in jobs:
        if job.process is not None and job.process.poll() is not None:
            _end(job, "finished" if job.process.returncode == 0 else "failed")
    done = {job.name for job in jobs if job.state == "finished"}
    running = sum(job.state == "running" for job in jobs)
    for job in jobs:
        if job.state == "waiting" and running < at_once and done.issuperset(job.after):
            job.process, job.began, job.state = launch(job, runs), time.monotonic(), "running"
            print(f"{job.name}: started", flush=True)
            running += 1
    return running > 0


def stop(jobs: list[Job]) -> None:
    """SIGTERM for what runs, so that trainings save; SIGKILL for what does not end then."""
    running = [job for job in jobs if job.process is not None]
    for job in running:
        assert job.process is not None
        job.process.send_signal(signal.SIGTERM)
    limit = time.monotonic() + SECONDS_TO_SAVE
    for job in running:
        assert job.process is not None
        try:
            status = job.process.wait(timeout=max(0.1, limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            job.process.kill()
            status = job.process.wait()
        _end(job, "finished" if status == 0 else "stopped")


def _end(job: Job, state: str) -> None:
    job.state, job.process = state, None
    job.seconds = round(job.seconds + time.monotonic() - job.began, 1)
    print(f"{job.name}: {state} after {job.seconds:.0f} s", flush=True)


def report(jobs: list[Job]) -> dict[str, Any]:
    """State, seconds and results by name."""
    found: dict[str, Any] = {}
    for job in jobs:
        found[job.name] = {"state": job.state, "seconds": job.seconds}
        run = run_of(job)
        if run is not None and (run / "model" / "results.json").exists():
            text = (run / "model" / "results.json").read_text("utf-8")
            found[job.name]["results"] = json.loads(text)
    return found


def start_headwise(job: Job, runs: Path, *, threads: int) -> subprocess.Popen[bytes]:
    """One command of Headwise, with its output in a file of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONUNBUFFERED": "1"}
    with (runs / f"{job.name}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "headwise", *job.words],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("plan", type=Path)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1, help="OMP_NUM_THREADS of each command")
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    state = options.runs / "together.json"
    jobs = read_plan(options.plan.read_text("utf-8"), options.runs)
    restore(jobs, json.loads(state.read_text("utf-8")) if state.exists() else {})
    try:
        run_all(
            jobs,
            options.runs,
            seconds=60 * options.minutes,
            at_once=options.at_once,
            launch=lambda job, runs: start_headwise(job, runs, threads=options.threads),
        )
    finally:
        state.write_text(json.dumps(report(jobs), ensure_ascii=False, indent=1), "utf-8")
    for name, entry in report(jobs).items():
        scores = entry.get("results", {}).get("test", {})
        print(f"{name:28} {entry['state']:9} {entry['seconds']:7.0f} s  {json.dumps(scores)[:200]}")


if __name__ == "__main__":
    main()
