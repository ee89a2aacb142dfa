"""Whether this is the process that speaks: under torchrun the first one, else the only one."""

import os


def is_first_process() -> bool:
    """Read from what torchrun sets, because loading torch to find out would take longer than most commands."""
    return os.environ.get("RANK", "0") == "0" or "WORLD_SIZE" not in os.environ
