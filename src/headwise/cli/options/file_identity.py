"""Tells whether two names refer to the same file: by relative path, link or redirection."""

import contextlib
import os
import stat
from pathlib import Path
from typing import TextIO


def is_same(one: Path, other: Path) -> bool:
    """Whether two paths are the same file or directory."""
    if one.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)


def numbers(status: os.stat_result) -> tuple[int, int]:
    """Device and inode."""
    return status.st_dev, status.st_ino


def identity(stream: TextIO | None) -> tuple[int, int] | None:
    """Device and inode of a stream that is redirected to or from a file; None for a terminal, a
    pipe or a stream in memory.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError):
        status = os.fstat(stream.fileno())  # type: ignore[union-attr]
        if stat.S_ISREG(status.st_mode):
            return numbers(status)
    return None
