"""How many connections the system lets a server have: each is an open file, and a process may have
so many.

The bound of the process is raised to what it is allowed at most. What is open already, and some for
a searching process that must be started again, for models and for connections that are accepted
only to be told 503 (`slots.py`), are left out. Tested: bounds of all sizes, a real process with 64
files.
"""

import os
import sys
from contextlib import suppress

from headwise.errors import UsageError

MAX_CONNECTIONS = 2_048
WANTED_FILES = 4_096
SPARE_FILES = 32
MIN_CONNECTIONS = 4


def allowed_connections() -> int:
    """For this process, as it is now."""
    if sys.platform == "win32":
        return MAX_CONNECTIONS
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_FILES if hard == resource.RLIM_INFINITY else min(hard, WANTED_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return (
        MAX_CONNECTIONS
        if soft == resource.RLIM_INFINITY
        else connections_within(soft, count_open_files())
    )


def connections_within(files: int, num_open: int) -> int:
    found = min(MAX_CONNECTIONS, files - num_open - SPARE_FILES)
    if found < MIN_CONNECTIONS:
        needed = num_open + SPARE_FILES + MIN_CONNECTIONS
        raise UsageError(
            f"this process may open {files} files, a server needs {needed} at least; raise it: "
            "ulimit -n 1024",
            f"本进程最多可打开 {files} 个文件，服务器至少需要 {needed} 个；请提高上限：ulimit -n "
            "1024",
        )
    return found


def count_open_files() -> int:
    for place in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return len(os.listdir(place))
    return SPARE_FILES
