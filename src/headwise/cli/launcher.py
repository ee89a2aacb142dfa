"""Finds out how this process was started: alone or by torchrun, and by which command.

Under torchrun only the first process prints. The command is needed to tell the user how to resume.
"""

import os
import shlex
from collections.abc import Sequence


def is_first_process() -> bool:
    """Read from the variables that torchrun sets, because importing torch would take longer than
    most commands.
    """
    return os.environ.get("RANK", "0") == "0" or "WORLD_SIZE" not in os.environ


def resume_command(given: Sequence[str], *, command: str, run: str | None) -> str:
    """The shortest command that resumes the run: a run keeps its recipe and its overrides."""
    if command == "train" and run is not None:
        words = [
            "train",
            "--run",
            run,
            "--resume",
            *(word for word in given if word in ("--anyway", "--json")),
        ]
    else:
        # The demo resumes by itself, unless --fresh is given.
        words = [word for word in given if word != "--fresh"]
    launcher = "torchrun … -m -- " if "WORLD_SIZE" in os.environ else ""
    return launcher + shlex.join(["headwise", *words])
