"""Computes how many connections the process can hold, from the system's limit on open files.

Each connection needs an open file. The soft limit is raised as far as the hard limit allows. Files
that are already open are subtracted. Some are reserved for restarting a worker process, for models,
and for connections that are accepted only to be told 503 (`connection_limit.py`). Tested: limits of
all sizes, and a real process with 64 files.
"""

import os
import sys
from contextlib import suppress

from headwise.errors import UsageError

MAX_CONNECTIONS = 2_048
WANTED_FILES = 4_096
SPARE_FILES = 32
MIN_CONNECTIONS = 4


def max_connections() -> int:
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
    if soft == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return connections_for(soft, count_open_files())


def connections_for(files: int, num_open: int) -> int:
    """Connections that fit into a limit of open files."""
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
    for directory in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return len(os.listdir(directory))
    return SPARE_FILES
