"""How this process was started: whether it is the one that speaks (under torchrun the first), and
the command that goes on with it.
"""

import os
import shlex
from collections.abc import Sequence


def is_first_process() -> bool:
    """Read from what torchrun sets, because loading torch to find out would take longer than most
    commands.
    """
    return os.environ.get("RANK", "0") == "0" or "WORLD_SIZE" not in os.environ


def resume_command(given: Sequence[str], *, command: str, run: str | None) -> str:
    """The shortest command that goes on with the run: a run keeps its recipe and what was changed
    of it.
    """
    if command == "train" and run is not None:
        words = [
            "train",
            "--run",
            run,
            "--resume",
            *(word for word in given if word in ("--anyway", "--json")),
        ]
    else:
        words = [
            word for word in given if word != "--fresh"
        ]  # of the demo, which goes on by itself
    launcher = "torchrun … -m -- " if "WORLD_SIZE" in os.environ else ""
    return launcher + shlex.join(["headwise", *words])
