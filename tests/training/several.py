"""Groups of forked processes that train together: `python -m tests.training.several DIRECTORY
SCENARIO …` prints JSON.

As in interrupted.py one process imports torch, never computes, and forks: a group of four starts in
tenths of a second. What torchrun would tell the processes is put into their environment.
"""

import json
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # what the first optimiser would import in every child
import torch.distributed.fsdp

from headwise import storage
from headwise.data.batching import Share
from headwise.errors import HeadwiseError, SaidElsewhere
from headwise.training import gradient_all_reduce as gradient_sums
from headwise.training import process_group as joining
from headwise.training.loop import train
from headwise.training.losses import cross_entropy
from headwise.training.prefetching import map_tensors
from headwise.training.process_group import Processes, join_processes
from headwise.training.run_directory import RunDirectory
from headwise.weights import weights_of
from tests.survival.interrupted import exit_of, fork
from tests.training.tiny import ROWS, TinyBatches, TinyTrainable, tiny_settings

stores: list[int] = []
"""Processes that keep a store for a group that is at work."""


class SharedBatches(TinyBatches):
    """The share of one process in the tiny batches."""

    def __init__(self, share: Share) -> None:
        super().__init__()
        self.share = share

    def stream(self, cursor: Mapping[str, int] | None) -> Iterator[tuple[Any, Mapping[str, int]]]:
        whole = super().stream(cursor)
        cuts = self.share.cuts(ROWS)
        while True:
            taken = [next(whole) for _ in range(self.share.accumulation)]
            rows = {
                name: torch.cat([getattr(batch, name) for batch, _ in taken])
                for name in ("words", "targets")
            }
            for begin, end in pairwise(cuts):
                batch = type(taken[0][0])(
                    **{name: tensor[begin:end] for name, tensor in rows.items()}
                )
                yield map_tensors(batch, torch.clone), taken[-1][1]


def train_shared(path: Path, *, dropout: float, pause: float = 0.0, **changes: Any) -> int:
    """In a child: one process of a training in `path`, resumed if it is there; its exit status."""
    torch.set_num_threads(1)
    os.fsync = lambda descriptor: time.sleep(pause)
    settings = tiny_settings(
        **{"steps": 20, "checkpoint_every": 5, "log_every": 1, "validate_every": 10, **changes}
    )
    try:
        with join_processes() as processes:
            run = None
            if processes.is_first:
                recipe = {"training": settings.model_dump(mode="json")}
                run = RunDirectory.open(path, recipe=recipe, resume=True)
            trainable = TinyTrainable(dropout)

            def evaluate(step: int) -> dict[str, float]:
                time.sleep(pause)
                sums = trainable.loss(TinyBatches(seed=99).batch(0))
                return {"loss": float(sums.loss / sums.num_tokens)}

            share = Share(processes.number, processes.count, settings.accumulation)
            train(
                trainable,
                SharedBatches(share),
                settings,
                run,
                evaluate=evaluate,
                processes=processes,
            )
            final = {
                name: weights.tolist() for name, weights in weights_of(trainable.module).items()
            }
            storage.write_json(path / f"final-{processes.number}.json", final)
            if run is not None:
                run.close()
    except SaidElsewhere as error:
        return error.exit_status
    except HeadwiseError as error:
        with (path / "said.txt").open("a", encoding="utf-8") as file:
            file.write(f"{error}\n")
        return error.exit_status
    return 0


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return opened.getsockname()[1]


def keep_store(port: int, *, tests: int) -> int:
    """What torchrun does besides starting processes: it keeps the store through which they meet."""
    store = torch.distributed.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)
    while os.getppid() == tests:  # nobody else would end it if the tests are killed
        time.sleep(0.5)
    return int(store is None)


def start(
    path: Path, count: int, *, work: Callable[[], int] | None = None, **changes: Any
) -> list[int]:
    """Fork the processes of a training; one process starts as if there were no torchrun."""
    path.mkdir(parents=True, exist_ok=True)
    port = free_port()
    children = []
    if count > 1:
        tests = os.getpid()
        stores.append(fork(lambda: keep_store(port, tests=tests)))
    for number in range(count):

        def begin(number: int = number) -> int:
            if count > 1:
                place = {
                    "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": str(port),
                    "TORCHELASTIC_USE_AGENT_STORE": "True",
                }
                os.environ.update(
                    RANK=str(number), WORLD_SIZE=str(count), LOCAL_RANK=str(number), **place
                )
            return work() if work is not None else train_shared(path, **{"dropout": 0.0, **changes})

        children.append(fork(begin))
    return children


def finish(children: list[int]) -> list[int]:
    statuses = [exit_of(child) for child in children]
    while stores:
        child = stores.pop()
        os.kill(child, signal.SIGKILL)
        exit_of(child)
    return statuses


def run_group(path: Path, count: int, **changes: Any) -> list[int]:
    return finish(start(path, count, **changes))


LONG = {"steps": 25, "dropout": 0.2}
LONGER = {"steps": 150, "dropout": 0.2}
SHARDED = {"parallel": {"kind": "sharded"}}
LAYOUTS: dict[str, tuple[int, dict[str, Any]]] = {
    "alone": (1, {}),
    "replicated-2": (2, {}),
    "replicated-4": (4, {}),
    "sharded-2": (2, SHARDED),
    "sharded-3": (3, SHARDED),
}
EXTRAS = {"ema": 0.9, "accumulation": 4, "dropout": 0.3, "clip": 0.1, "steps": 8}
"""Everything that has state, and dropout; four batches an update, so that 1, 2 and 4 processes take
whole ones."""


def compare_layouts(directory: Path, names: Sequence[str], **changes: Any) -> dict[str, list[int]]:
    return {
        name: run_group(directory / name, LAYOUTS[name][0], **LAYOUTS[name][1], **changes)
        for name in names
    }


def exchange_checkpoints(directory: Path) -> list[list[int]]:
    """Five steps by one group, five more by the next, and so on."""
    found = []
    for number, name in enumerate(("replicated-2", "sharded-2", "alone", "replicated-4"), start=1):
        count, changes = LAYOUTS[name]
        found.append(run_group(directory, count, steps=5 * number, **changes))
    return found


def compare_with_ddp(directory: Path) -> list[int]:
    """Our sums of gradients beside torch's class, in float64, with buffers so small that there are
    several of them.
    """
    gradient_sums.BUFFER_BYTES = 1000

    def work() -> int:
        with join_processes() as processes:
            # Whose objects must be gone before the group is.
            return int(differs_from_ddp(processes))

    return finish(start(directory, 3, work=work))


def differs_from_ddp(processes: Processes) -> bool:
    batch = next(SharedBatches(Share(processes.number, processes.count)).stream(None))[0]
    ours, theirs = TinyTrainable(0.0), TinyTrainable(0.0)
    for trainable in (ours, theirs):
        trainable.module.double()
    summed = gradient_sums.GradientSum(list(ours.module.parameters()), overlap=True)
    for is_last in (False, True):  # two batches an update: only the second is followed by a sum
        summed.backward(ours.loss(batch).loss, is_last=is_last)
    inner = theirs.module
    theirs.module = torch.nn.parallel.DistributedDataParallel(inner)
    hidden = theirs.module(batch.words).flatten(0, 1)
    targets = batch.targets.flatten()
    cross_entropy(
        hidden, inner.output.weight, targets=targets, smoothing=theirs.smoothing
    ).loss.backward()
    pairs = zip(ours.module.parameters(), inner.parameters(), strict=True)
    return any(
        not torch.allclose(a.grad, 2 * processes.count * b.grad, rtol=1e-12) for a, b in pairs
    )


def kill_one(
    directory: Path, *, count: int, victim: int, times: int, **changes: Any
) -> dict[str, Any]:
    """Kill one process again and again at random times, then let the training end."""
    chance = random.Random(victim + 7 * count)
    statuses, seconds = [], []
    options = {**LONG, "pause": 0.002, **changes}
    for _ in range(times):
        children = start(directory, count, **options)
        # Not before the group has met: a process that never came is waited for as long as one that
        # is late.
        before = newest(directory)
        deadline = time.monotonic() + 20
        while newest(directory) <= before and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(chance.uniform(0, 0.1))
        os.kill(children[victim], signal.SIGKILL)
        began = time.monotonic()
        statuses.append(finish(children))
        seconds.append(time.monotonic() - began)
    return {"statuses": statuses, "seconds": seconds, "end": run_group(directory, count, **options)}


def newest(directory: Path) -> int:
    return max(
        (int(path.name[5:]) for path in directory.glob("checkpoints/step-*[0-9]")), default=0
    )


def stop_one(directory: Path, *, victim: int, **changes: Any) -> dict[str, Any]:
    """SIGTERM to one process of two; both must save and leave."""
    options = {**LONG, "pause": 0.002, **changes}
    children = start(directory, 2, **options)
    while newest(directory) < 5:
        time.sleep(0.005)
    os.kill(children[victim], signal.SIGTERM)
    return {"statuses": finish(children), "end": run_group(directory, 2, **options)}


def stall_one(directory: Path) -> dict[str, Any]:
    """A process that is there but does nothing (stopped, swapped out, on a dead network) is not
    waited for for ever.
    """
    joining.LONGEST_WAIT = timedelta(seconds=2)
    children = start(directory, 2, steps=400, pause=0.002)
    while newest(directory) < 5:
        time.sleep(0.005)
    os.kill(children[1], signal.SIGSTOP)
    began = time.monotonic()
    status = exit_of(children[0])
    waited = time.monotonic() - began
    os.kill(children[1], signal.SIGKILL)
    finish(children[1:])
    return {"status": status, "seconds": waited}


def main(base: Path, names: Sequence[str]) -> dict[str, Any]:
    few = ("alone", "replicated-2", "replicated-4", "sharded-2")
    scenarios = {
        "layouts": lambda: compare_layouts(base / "layouts", few),
        "ddp": lambda: compare_with_ddp(base / "ddp"),
        "odd": lambda: compare_layouts(base / "layouts", ["sharded-3"]),
        "extras": lambda: compare_layouts(
            base / "extras", ("alone", "replicated-2", "sharded-2"), **EXTRAS
        ),
        "exchange": lambda: exchange_checkpoints(base / "exchange"),
        "undisturbed": lambda: run_group(base / "undisturbed", 2, **LONG),
        "kill": lambda: kill_one(base / "killed-1", count=2, victim=1, times=1),
        "stop": lambda: stop_one(base / "stopped-1", victim=1),
        "undisturbed-long": lambda: run_group(base / "undisturbed-long", 2, **LONGER),
        "kills": lambda: [
            kill_one(base / f"killed-{n}", count=2, victim=n, times=5, **LONGER) for n in (0, 1)
        ],
        "stops": lambda: [stop_one(base / f"stopped-{n}", victim=n) for n in (0, 1)],
        "stall": lambda: stall_one(base / "stalled"),
        "undisturbed-4": lambda: run_group(base / "undisturbed-4", 4, **LONGER),
        "kills-4": lambda: kill_one(base / "killed-of-4", count=4, victim=2, times=3, **LONGER),
        "undisturbed-sharded": lambda: run_group(
            base / "undisturbed-sharded", 2, **LONGER, **SHARDED
        ),
        "kills-sharded": lambda: kill_one(
            base / "killed-sharded", count=2, victim=1, times=3, **LONGER, **SHARDED
        ),
    }
    return {name: scenarios[name]() for name in names}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2:])))
