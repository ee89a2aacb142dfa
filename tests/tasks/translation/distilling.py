"""A process that forks distillations, kills them and runs groups of them; prints JSON.

    python -m tests.tasks.translation.distilling DIRECTORY MODEL SCENARIO …

As in tests/survival/interrupted.py it imports torch, never computes, and forks a child for each
attempt. Saving is slowed down in the children, so that some kills fall into it.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from headwise.errors import HeadwiseError, SaidElsewhere
from headwise.tasks.translation.distillation import distil
from headwise.tasks.translation.distillation_request import DistillationRequest
from headwise.tasks.translation.distillation_shards import part_of_output
from tests.survival.interrupted import exit_of, fork
from tests.training.several import finish, start

PAUSE = 0.002


def work(model: Path, output: Path, source: Path) -> int:
    """In a child: distil or go on; its exit status."""
    os.fsync = lambda descriptor: time.sleep(PAUSE)
    request = DistillationRequest(
        model,
        output,
        sources=(source,),
        decoding=("size=2", "at_limit=end"),
        overrides=("data.filter.max_ratio=null",),
        shard=7,
        device="cpu",
    )
    try:
        distil(request)
    except SaidElsewhere as error:
        return error.exit_status
    except HeadwiseError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


def kill(directory: Path, model: Path, source: Path) -> dict[str, Any]:
    """Kill one after the other at random times until nothing is left to do."""
    chance, output = random.Random(3), directory / "killed"
    part, kills, shards = part_of_output(output), 0, []
    while not output.exists():
        child = fork(lambda: work(model, output, source))
        before = len(list(part.glob("0*[0-9]")))
        deadline = time.monotonic() + 20
        while len(list(part.glob("0*[0-9]"))) <= before and time.monotonic() < deadline:
            if output.exists():
                break
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.06))
        os.kill(child, signal.SIGKILL)
        kills += exit_of(child) != 0
        shards.append(len(list(part.glob("0*[0-9]"))))
    status = exit_of(fork(lambda: work(model, output, source)))
    return {"kills": kills, "shards": shards, "status": status, "part": part.exists()}


def stop(directory: Path, model: Path, source: Path) -> dict[str, Any]:
    """SIGTERM while shards are being made, then the same again to the end."""
    output = directory / "stopped"
    part = part_of_output(output)
    child = fork(lambda: work(model, output, source))
    while not list(part.glob("0*[0-9]")):
        time.sleep(0.002)
    os.kill(child, signal.SIGTERM)
    status = exit_of(child)
    return {"status": status, "end": exit_of(fork(lambda: work(model, output, source)))}


def group(directory: Path, model: Path, source: Path, *, count: int) -> list[int]:
    """As torchrun starts them."""
    output = directory / f"group-{count}"
    return finish(start(directory, count, work=lambda: work(model, output, source)))


def resume_by_group(directory: Path, model: Path, source: Path) -> list[int]:
    """One process begins and is killed, two go on."""
    output = directory / "resumed-by-2"
    part = part_of_output(output)
    child = fork(lambda: work(model, output, source))
    while len(list(part.glob("0*[0-9]"))) < 2:
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    exit_of(child)
    return finish(start(directory, 2, work=lambda: work(model, output, source)))


def main(directory: Path, model: Path, names: list[str]) -> dict[str, Any]:
    source = directory / "source.en"
    scenarios = {
        "whole": lambda: exit_of(fork(lambda: work(model, directory / "whole", source))),
        "kill": lambda: kill(directory, model, source),
        "stop": lambda: stop(directory, model, source),
        "group": lambda: group(directory, model, source, count=2),
        "group-3": lambda: group(directory, model, source, count=3),
        "resume": lambda: resume_by_group(directory, model, source),
    }
    return {name: scenarios[name]() for name in names}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])))
