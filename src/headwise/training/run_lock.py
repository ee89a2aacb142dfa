"""Locks a run directory: one trainer at a time. This file does not import torch."""

import contextlib
import os
from pathlib import Path

from headwise.errors import UsageError


def take_lock(path: Path, flags: int = os.O_RDWR | os.O_CREAT) -> int | None:
    """Hold `.lock` until it is released; the system releases the lock of a dead process."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system: there is no such lock
        return None
    descriptor = os.open(path / ".lock", flags | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise UsageError(
            f"another process is training in {path}; wait for it, stop it, or choose another "
            "directory",
            f"另一个进程正在 {path} 中训练；请等待或停止它，或换一个目录",
        ) from error
    return descriptor


def lock_is_held(path: Path) -> bool:
    """Whether a trainer is working in this directory; asking changes nothing.

    It works on a read-only disk too.
    """
    if not (path / ".lock").exists():
        return False
    try:
        release_lock(take_lock(path, os.O_RDONLY))
    except UsageError:
        return True
    return False


def release_lock(descriptor: int | None) -> None:
    if descriptor is not None:
        with contextlib.suppress(OSError):
            os.close(descriptor)
