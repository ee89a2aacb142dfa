"""A process that forks trainings and interrupts them: `python -m tests.training.interrupted DIRECTORY NUM_KILLS`.

Importing torch takes seconds, a tiny training tenths: so one process imports, never computes, and forks a child for each
attempt. Saving is slowed down in the children, so that many interruptions fall into it. Prints JSON.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch._dynamo  # what the first optimiser would import in every child

from headwise import storage
from headwise.errors import TrainingStopped
from headwise.training.loop import train
from headwise.training.run_directory import RunDirectory
from headwise.weights import weights_of
from tests.training.tiny import TinyBatches, TinyTrainable, tiny_settings

STEPS = 40


def train_once(path: Path, *, evaluate: Callable[[int], dict[str, float]] | None = None, pause: float = 0.001) -> int:
    """In a child: train or resume to the end; its exit status."""
    torch.set_num_threads(1)
    os.fsync = lambda descriptor: time.sleep(pause)
    settings = tiny_settings(steps=STEPS, checkpoint_every=5, log_every=7, validate_every=10)
    try:
        with RunDirectory.open(path, recipe={"training": settings.model_dump(mode="json")}, resume=True) as run:
            trainable = TinyTrainable()
            train(trainable, TinyBatches(), settings, run, evaluate=evaluate or (lambda step: {"loss": 1 / step}))
            storage.write_json(
                path / "final.json", {name: w.tolist() for name, w in weights_of(trainable.module).items()}
            )
    except TrainingStopped as stopped:
        return stopped.exit_status
    return 0


def fork(work: Callable[[], int]) -> int:
    child = os.fork()
    if child == 0:
        status = 99
        try:
            status = work()
        finally:
            os._exit(status)
    return child


def exit_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def interrupt_with_kills(path: Path, num_kills: int) -> dict[str, object]:
    chance = random.Random(1)
    inside_a_save = kills = 0
    while kills < num_kills:
        child = fork(lambda: train_once(path))
        time.sleep(chance.uniform(0.02, 0.2))
        os.kill(child, signal.SIGKILL)
        if exit_of(child) == 0:
            break
        kills += 1
        inside_a_save += any(path.glob("*/*.incomplete")) or any(path.glob("*.incomplete"))
    status = exit_of(fork(lambda: train_once(path)))
    return {"kills": kills, "inside_a_save": inside_a_save, "status": status}


def wait_for_step(path: Path) -> None:
    while not list(path.glob("checkpoints/step-5")):
        time.sleep(0.005)


def interrupt_with_signals(path: Path) -> dict[str, object]:
    statuses = {}
    for name, numbers in {
        "term": [signal.SIGTERM],
        "interrupt": [signal.SIGINT],
        "twice": [signal.SIGINT, signal.SIGTERM],
    }.items():
        # Twice: saving is so slow that the second signal finds it unfinished.
        pause = 0.1 if name == "twice" else 0.001
        child = fork(lambda name=name, pause=pause: train_once(path / name, pause=pause))
        wait_for_step(path / name)
        started = time.monotonic()
        for number in numbers:
            os.kill(child, number)
            time.sleep(0.02)
        statuses[name] = {"status": exit_of(child), "seconds": time.monotonic() - started}

    def never_ending(step: int) -> dict[str, float]:
        time.sleep(60 if step == 10 else 0)
        return {"loss": 1 / step}

    child = fork(lambda: train_once(path / "validating", evaluate=never_ending))
    wait_for_step(path / "validating")
    time.sleep(0.3)
    os.kill(child, signal.SIGTERM)
    statuses["validating"] = {"status": exit_of(child), "seconds": 0.0}
    for name in list(statuses):
        statuses[name]["resumed"] = exit_of(fork(lambda name=name: train_once(path / name)))
    return statuses


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    undisturbed = exit_of(fork(lambda: train_once(directory / "undisturbed", pause=0)))
    assert undisturbed == 0
    killed = interrupt_with_kills(directory / "killed", int(sys.argv[2]))
    print(json.dumps({"kills": killed, "signals": interrupt_with_signals(directory)}))
