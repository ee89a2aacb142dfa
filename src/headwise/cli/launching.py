"""How this process was started: whether it is the one that speaks (under torchrun the first), and the command that goes on with it."""

import os
import shlex
from collections.abc import Sequence


def is_first_process() -> bool:
    """Read from what torchrun sets, because loading torch to find out would take longer than most commands."""
    return os.environ.get("RANK", "0") == "0" or "WORLD_SIZE" not in os.environ


def command_to_go_on(given: Sequence[str], *, command: str) -> str:
    """The command that was given, so that it goes on with its run instead of starting anew."""
    words = [word for word in given if word != "--fresh"]  # of the demo, which goes on by itself
    if command == "train" and "--resume" not in words:
        words.append("--resume")
    launcher = "torchrun … -m -- " if "WORLD_SIZE" in os.environ else ""
    return launcher + shlex.join(["headwise", *words])
