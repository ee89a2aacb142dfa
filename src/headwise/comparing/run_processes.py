"""Runs the trainings of a comparison: each is `headwise train` in its own process, a few at a time.

Separate processes keep the measurements apart: compiled code, cached memory or a failed device of
one run cannot affect the next. A finished run is not repeated, and an interrupted one resumes from
its checkpoint. Before anything starts, the comparison is refused if a run directory holds another
recipe, or if all runs would fail (shared_data.py). If one run fails, the others continue. Signals
are passed on, and all runs save; they also save if the comparison is killed (child_processes.py).
If another process is training a run, the comparison waits for it.

Tested with runs that finish, fail, are stopped and are trained by another process, and with a
changed recipe.
"""

import contextlib
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from headwise.child_processes import child_command, child_options
from headwise.comparing.shared_data import prepare_runs
from headwise.comparing.variants import Run
from headwise.data.pairs.shared_preparation import link_prepared
from headwise.errors import UsageError
from headwise.language import clock, say
from headwise.storage import write_text
from headwise.tasks.events import Events
from headwise.tasks.finished_run import has_scores, saved_results
from headwise.tasks.recipe import complete_recipe, write_recipe
from headwise.tasks.table import find_task
from headwise.training.run_lock import lock_is_held
from headwise.training.run_recipe import FILE as RECIPE
from headwise.training.run_recipe import check_recipe, read_run_recipe

POLL_SECONDS = 0.2
TAIL_BYTES = 4096
MAX_SAID_BYTES = 1 << 20
MAX_REASON = 300


@dataclass(frozen=True)
class Outcome:
    """How a run ended: its results, or why there are none."""

    run: Run
    results: dict[str, Any] | None
    failure: str | None = None


def check_runs(runs: Sequence[Run]) -> None:
    """Refuse run directories that hold another recipe; all of them are named at once."""
    problems: list[UsageError] = []
    for run in runs:
        path = run.directory / RECIPE
        has_saved = any((run.directory / name).exists() for name in ("LATEST", "model"))
        if not path.exists() or not has_saved:
            continue  # a run that saved nothing starts again with any recipe
        try:
            old = read_run_recipe(path, complete_recipe)
            check_recipe(old, run.recipe.model_dump(mode="json"), file=path)
        except UsageError as error:
            problems.append(error)
    if problems:
        raise UsageError(
            "a comparison with other settings stands here:\n"
            + "\n".join(f"{problem.file}: {problem.en}" for problem in problems)
            + "\nto compare anew, give another --directory",
            "此处已有设置不同的比较：\n"
            + "\n".join(f"{problem.file}：{problem.zh}" for problem in problems)
            + "\n要重新比较，请另给 --directory",
        )


def finished_results(run: Run) -> dict[str, Any] | None:
    """The results of a finished and measured run with exactly this recipe, or None."""
    results = saved_results(run.recipe, run.directory)
    if results is None or not has_scores(find_task(run.recipe), run.recipe, run.directory, results):
        return None
    return results


def run_all(runs: Sequence[Run], *, directory: Path, jobs: int, events: Events) -> list[Outcome]:
    """Check, prepare, start, watch and collect; the outcomes are in the order of the runs."""
    check_runs(runs)
    done = {run.label: results for run in runs if (results := finished_results(run)) is not None}
    if done:
        events.note(
            say(
                f"{len(done)} of {len(runs)} runs are finished already",
                f"{len(runs)} 次运行中已有 {len(done)} 次完成",
            )
        )
    waiting = [run for run in runs if run.label not in done]
    prepared = prepare_runs(waiting, directory=directory, events=events) if waiting else {}
    failures: dict[str, str] = {}
    working: dict[str, _RunningProcess] = {}
    watch, elsewhere = _RunProgress(runs, finished=set(done), jobs=jobs), _RunsElsewhere(events)
    try:
        while waiting or working:
            for run in elsewhere.leave_out(waiting)[
                : max(0, jobs - len(working) - elsewhere.count)
            ]:
                waiting.remove(run)
                if (results := finished_results(run)) is not None:  # by whom it was waited for
                    done[run.label] = results
                    watch.finished.add(run.label)
                else:
                    if run.label in prepared:
                        link_prepared(prepared[run.label], run.directory / "data")
                    working[run.label] = _RunningProcess(run, _said_so_far(run), _start(run))
            time.sleep(POLL_SECONDS)
            for label, (run, said, process) in list(working.items()):
                if process.poll() is not None:
                    del working[label]
                    if process.returncode != 0 and lock_is_held(run.directory):
                        waiting.insert(0, run)
                        continue
                    watch.finished.add(label)
                    if (results := finished_results(run)) is not None and process.returncode == 0:
                        done[label] = results
                    else:
                        failures[label] = _reason(run, process.returncode, since=said)
                        events.note(
                            say(
                                f"{label} failed: {failures[label]}",
                                f"{label} 失败：{failures[label]}",
                            )
                        )
            events.count(watch.describe([one.run for one in working.values()]), *watch.counts())
    except BaseException:
        _stop([one.process for one in working.values()])
        raise
    return [Outcome(run, done.get(run.label), failures.get(run.label)) for run in runs]


class _RunningProcess(NamedTuple):
    run: Run
    said: int
    """The size of its log before it started: earlier messages are not the reason of a failure."""
    process: subprocess.Popen[bytes]


class _RunsElsewhere:
    """Runs that another process is training. Each of them counts as one of our runs, because it
    slows down the others.
    """

    def __init__(self, events: Events) -> None:
        self.count, self._events, self._told = 0, events, set[str]()

    def leave_out(self, waiting: Sequence[Run]) -> list[Run]:
        free = [run for run in waiting if not lock_is_held(run.directory)]
        self.count = len(waiting) - len(free)
        for run in waiting:
            if run not in free and run.label not in self._told:
                self._told.add(run.label)
                self._events.note(
                    say(
                        f"{run.label} is being trained in {run.directory} by another process "
                        "(perhaps left by a comparison that was killed); waiting for it (or stop "
                        "it: this one goes on from its last checkpoint)",
                        f"{run.label} 正由另一个进程在 {run.directory} "
                        "中训练（可能是被强行终止的比较留下的）；正在等它完成（也可停止它："
                        "本次会从其最后的检查点继续）",
                    )
                )
        return free


def _start(run: Run) -> subprocess.Popen[bytes]:
    run.directory.parent.mkdir(parents=True, exist_ok=True)
    write_text(run.recipe_file, write_recipe(run.recipe))
    words = ["train", str(run.recipe_file), "--run", str(run.directory), "--json"]
    if (run.directory / RECIPE).exists():
        words.append("--resume")
    # Only the comparison receives Ctrl-C and passes it on once: a second signal would end a run
    # without saving.
    with run.log_file.open("ab") as log:
        return subprocess.Popen(
            child_command("headwise", *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            **child_options(),
        )


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
    for process in processes:
        process.wait()


def _said_so_far(run: Run) -> int:
    return run.log_file.stat().st_size if run.log_file.exists() else 0


def _reason(run: Run, status: int, *, since: int) -> str:
    """Why a run failed, from its output: our error message, or else the exception of a traceback,
    or else the last line.
    """
    lines: list[str] = []
    if run.log_file.exists():
        with run.log_file.open("rb") as log:
            log.seek(max(since, _said_so_far(run) - MAX_SAID_BYTES))
            lines = log.read(MAX_SAID_BYTES).decode("utf-8", errors="replace").splitlines()
    marks = ("headwise: error: ", "headwise: 错误: ")
    said = [line[len(mark) :] for line in lines for mark in marks if line.startswith(mark)]
    said = said or [
        line for line in lines if re.match(r"[\w.]+(Error|Exception|Failure|Failed): ", line)
    ]
    said = said or [line.strip() for line in lines if line.strip()]
    text = said[-1] if said else say("it said nothing", "没有任何说明")
    if status < 0:
        text = say(f"ended by signal {-status}; {text}", f"被信号 {-status} 结束；{text}")
    return text if len(text) <= MAX_REASON else text[: MAX_REASON - 1] + "…"


class _RunProgress:
    """The progress of the runs, from their logs."""

    def __init__(self, runs: Sequence[Run], *, finished: set[str], jobs: int) -> None:
        self.runs, self.finished, self.jobs = runs, finished, jobs
        self.before = sum(self._steps(run) for run in runs)
        self.began = time.monotonic()

    def counts(self) -> tuple[int, int]:
        """Updates done and in all; one is counted as open while a run is measured."""
        total = sum(run.num_steps for run in self.runs)
        unfinished = len(self.runs) - len(self.finished)
        return min(sum(self._steps(run) for run in self.runs), total - unfinished), total

    def describe(self, working: Sequence[Run]) -> str:
        done, total = self.counts()
        new, rest = done - self.before, total - done
        seconds = (time.monotonic() - self.began) / new * rest if new > 0 else None
        left = clock(seconds)
        names = ", ".join(f"{run.label} {self._steps(run)}/{run.num_steps}" for run in working)
        number = len(self.finished)
        # A run without steps counts as one.
        unit = say("steps", "步数") if total > len(self.runs) else say("runs", "运行")
        return say(
            f"{number}/{len(self.runs)} runs done, left {left}, now {names or '–'}; {unit}",
            f"已完成 {number}/{len(self.runs)} 次运行，剩余 {left}，正在 {names or '–'}；{unit}",
        )

    def _steps(self, run: Run) -> int:
        if run.label in self.finished:
            return run.num_steps
        return last_step(run.directory / "log.jsonl")


def last_step(log: Path) -> int:
    """The last update in a log, or 0. Only the end of the file is read, which is fast."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            found = re.findall(rb'"step": (\d+)', file.read(TAIL_BYTES))
    except OSError:
        return 0
    return int(found[-1]) if found else 0
