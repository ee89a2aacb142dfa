"""Finds out how much memory a training may use: free memory, or the limit of a container or
process.
"""

import sys
from pathlib import Path

import torch

_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def available_memory(device: torch.device) -> int | None:
    """Bytes that a training may still use on this device; None if unknown."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    found = [limit for limit in (_of_system(), _of_container(), _of_process()) if limit is not None]
    return min(found) if found else None


def _of_system(path: Path = Path("/proc/meminfo")) -> int | None:
    """The estimate of Linux of what is available without swapping."""
    for line in _read(path).splitlines():
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    return None


def _of_container(root: Path = Path("/")) -> int | None:
    for limit, used in _CGROUPS:
        most, now = (_read(root / path.lstrip("/")).strip() for path in (limit, used))
        if most.isdigit() and now.isdigit():
            return max(0, int(most) - int(now))
    return None


def _of_process() -> int | None:
    """What `ulimit -v` leaves of the address space."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return None
    pages = _read(Path("/proc/self/statm")).split()
    return max(0, soft - (int(pages[0]) * resource.getpagesize() if pages else 0))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
