"""A process that forks trainings and interrupts them; prints JSON.

    python -m tests.survival.interrupted DIRECTORY NUM_KILLS KILLS_IN_A_SERIES ROUNDS_OF_SIGNALS

Importing torch takes seconds, a tiny training tenths: so one process imports, never computes, and
forks a child for each attempt. Saving is slowed down in the children, so that many interruptions
fall into it. What a child was doing when it died is read from a page of memory it shared.
"""

import itertools
import json
import math
import mmap
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # what the first optimiser would import in every child

from headwise.errors import TrainingStopped, UsageError
from headwise.training.loop import train
from headwise.training.progress import Progress
from headwise.training.run_directory import RunDirectory
from headwise.weights import weights_of, write_tensors
from tests.training.tiny import ROWS_IN_EPOCH, TinyBatches, TinyTrainable, tiny_settings

STEPS = 40
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "accumulation": {"accumulation": 3},
    "ema": {"ema": 0.9},
    "snapshots": {"average": {"last": 3, "every": 4}},
}
TRANSLATOR = "translator"
"""A whole translator, which takes a second: only in long series."""
MANY = 20
Evaluate = Callable[[int], dict[str, float]]

shared_page = mmap.mmap(-1, mmap.PAGESIZE)


def tell(progress: Progress) -> None:
    """Write down what is being done, where the parent can read it after the child's death."""
    shared_page[:32] = f"{progress.phase} {progress.step}".encode().ljust(32)


def last_words() -> tuple[str, int]:
    phase, _, step = bytes(shared_page[:32]).decode().strip("\0 ").partition(" ")
    return phase or "starting", int(step or 0)


def train_once(
    path: Path, variant: str, *, evaluate: Evaluate | None = None, pause: float = 0.001
) -> int:
    """In a child: train or resume to the end; its exit status."""
    torch.set_num_threads(1)
    os.fsync = lambda descriptor: time.sleep(pause)
    if variant == TRANSLATOR:
        return train_translator(path)
    settings = tiny_settings(
        steps=STEPS, checkpoint_every=5, log_every=7, validate_every=10, **VARIANTS[variant]
    )
    evaluate = evaluate or (lambda step: {"loss": 1 / step})
    try:
        with RunDirectory.open(
            path, recipe={"training": settings.model_dump(mode="json")}, resume=True
        ) as run:
            trainable = TinyTrainable()
            train(trainable, TinyBatches(), settings, run, evaluate=evaluate, progress=tell)
            write_tensors(path / "final.safetensors", weights_of(trainable.module))
    except TrainingStopped as stopped:
        return stopped.exit_status
    return 0


def train_translator(path: Path) -> int:
    """The whole way: data prepared, model trained, validated, bundled."""
    from headwise.tasks.events import Silence
    from headwise.tasks.run import train as train_by_recipe
    from tests.tasks.tiny import tiny_recipe

    class Watcher(Silence):
        def training(self, progress: Progress) -> None:
            tell(progress)

    recipe = tiny_recipe(f"training.steps={STEPS}", "training.validate_every=10", "data.test=null")
    train_by_recipe(recipe, run=path, resume=True, events=Watcher())
    return 0


def fork(work: Callable[[], int]) -> int:
    shared_page[:32] = bytes(32)
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)  # OpenMP waits forever for threads that did not survive the fork
        status = 99
        try:
            status = work()
        finally:
            os._exit(status)
    return child


def exit_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def series_variants(num_kills: int, in_a_series: int) -> list[str]:
    """Every kind of run in a long series, as many as there is time for in a short one; the plain
    one is always needed."""
    every = ["plain", "snapshots", "accumulation", "ema", TRANSLATOR]
    return every if num_kills >= MANY else every[: max(1, math.ceil(num_kills / in_a_series))]


def interrupt_with_kills(directory: Path, num_kills: int, in_a_series: int) -> dict[str, Any]:
    """Series of kills, each on its own run, variant after variant; after its kills a series trains
    to the end."""
    chance = random.Random(1)
    phases: Counter[str] = Counter()
    epochs: Counter[int] = Counter()
    series = []
    variants = itertools.cycle(series_variants(num_kills, in_a_series))
    while phases.total() < num_kills:
        variant = next(variants)
        path = directory / f"killed-{len(series)}-{variant}"
        until = min(num_kills, phases.total() + in_a_series)
        while phases.total() < until:
            child = fork(lambda: train_once(path, variant))  # noqa: B023 - forked at once
            # Every third kill is aimed at a save, all others fall where they may.
            if phases.total() % 3 == 0:
                wait_while_busy(lambda: last_words()[0] in ("saving", "finished"))
                time.sleep(chance.uniform(0.0, 0.008))
            else:
                time.sleep(chance.uniform(0.02, 0.2 if variant != TRANSLATOR else 1.0))
            os.kill(child, signal.SIGKILL)
            if exit_of(child) == 0:
                break
            phase, step = last_words()
            phases[phase] += 1
            # The last batch of an update is known; with accumulation an epoch passes three times as
            # fast.
            batches = step * VARIANTS.get(variant, {}).get("accumulation", 1)
            epochs[batches // ROWS_IN_EPOCH] += variant != TRANSLATOR
        child = fork(lambda: train_once(path, variant))  # noqa: B023
        series.append({"path": path.name, "variant": variant, "status": exit_of(child)})
    return {"series": series, "phases": phases, "epochs": epochs}


def wait_while_busy(reached: Callable[[], bool]) -> None:
    """Like wait_until, but a child that never gets there is no fault: it may have nothing to
    save."""
    deadline = time.monotonic() + 5
    while not reached() and time.monotonic() < deadline:
        time.sleep(0.001)


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < deadline, last_words()
        time.sleep(0.002)


def never_ending(step: int) -> dict[str, float]:
    time.sleep(60 if step == 10 else 0)
    return {"loss": 1 / step}


def is_doing(phase: str, step: int) -> Callable[[], bool]:
    return lambda: last_words()[0] == phase and last_words()[1] >= step


CASES: dict[str, dict[str, Any]] = {
    "term": {"numbers": [signal.SIGTERM], "when": ("training", 6)},
    "interrupt": {"numbers": [signal.SIGINT], "when": ("training", 6)},
    "saving": {"numbers": [signal.SIGTERM], "when": ("saving", 5), "pause": 0.01},
    # Saving is so slow that the second signal finds it unfinished.
    "twice": {"numbers": [signal.SIGINT, signal.SIGTERM], "when": ("training", 6), "pause": 0.03},
    "validating": {
        "numbers": [signal.SIGTERM],
        "when": ("validating", 10),
        "evaluate": never_ending,
    },
}


def interrupt_with_signals(directory: Path, rounds: int) -> list[dict[str, Any]]:
    chance = random.Random(2)
    answers = []
    for turn, (name, case) in itertools.product(range(rounds), CASES.items()):
        path = directory / f"{name}-{turn}"
        pause, evaluate = case.get("pause", 0.001), case.get("evaluate")
        child = fork(lambda: train_once(path, "plain", pause=pause, evaluate=evaluate))  # noqa: B023
        wait_until(is_doing(*case["when"]))
        time.sleep(chance.uniform(0.0, 0.01))
        second_refused = None
        if name == "term":
            second_refused = exit_of(fork(lambda: open_beside(path)))  # noqa: B023
        started = time.monotonic()
        for number in case["numbers"]:
            os.kill(child, number)
            time.sleep(0.02)
        status, seconds = exit_of(child), time.monotonic() - started
        phase = last_words()[0]
        resumed = exit_of(fork(lambda: train_once(path, "plain")))  # noqa: B023
        answers.append(
            {"case": name, "path": path.name, "status": status, "seconds": seconds, "phase": phase}
        )
        answers[-1] |= {"resumed": resumed, "second_trainer": second_refused}
    return answers


def open_beside(path: Path) -> int:
    """A second trainer in the same directory: its exit status, 2 if it is refused."""
    try:
        RunDirectory.open(path, recipe={}, resume=True).close()
    except UsageError as error:
        return error.exit_status if "another process is training" in str(error) else 98
    return 0


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    num_kills, in_a_series, rounds = map(int, sys.argv[2:])
    if num_kills >= MANY:
        import headwise.tasks.run  # noqa: F401 - once here, not in every child
    for variant in series_variants(num_kills, in_a_series):
        child = fork(
            lambda variant=variant: train_once(directory / f"whole-{variant}", variant, pause=0)
        )
        assert exit_of(child) == 0
    kills = interrupt_with_kills(directory, num_kills, in_a_series)
    print(json.dumps({"kills": kills, "signals": interrupt_with_signals(directory, rounds)}))
