"""Files of a directory that others write into: read whatever they are, and never more than they
should be.

A directory of runs is shown to whoever may open the page, so a file in it is opened only if it is
an ordinary one (a pipe would be waited for without end), lies inside the directory once every link
is followed, and is not too large. What is read may hold anything: numbers beyond what a float holds
and letters that no reply can carry are told apart here.

Tested against: pipes, links that lead out, half letters, numbers of 400 digits.
"""

import json
import math
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

MAX_EXACT = 2**53
"""Whole numbers up to here are the same in a page's arithmetic."""


def lies_inside(root: Path, path: Path) -> bool:
    """Whether a path, its links followed, leads to somewhere below the root."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def is_file_inside(root: Path, path: Path) -> bool:
    """Whether there is an ordinary file below the root."""
    try:
        return stat.S_ISREG(os.stat(os.path.realpath(path)).st_mode) and lies_inside(root, path)
    except (OSError, ValueError):
        return False


def open_inside(root: Path, path: Path) -> BinaryIO:
    """An ordinary file below the root, opened for reading; anything else is an OSError."""
    if not is_file_inside(root, path):
        raise FileNotFoundError(2, "no ordinary file inside the directory")
    # It may have been exchanged since: a link is not followed any more, and a pipe is not waited
    # for.
    descriptor = os.open(os.path.realpath(path), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError(2, "no ordinary file inside the directory")
    return os.fdopen(descriptor, "rb")


def read_inside(root: Path, path: Path, *, max_bytes: int) -> bytes:
    """The whole of a small file."""
    with open_inside(root, path) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(27, "the file is too large")
    return content


def read_json_inside(root: Path, path: Path, *, max_bytes: int) -> Any:
    """JSON of a small file; what cannot be read is an OSError or a ValueError."""
    try:
        return json.loads(read_inside(root, path, max_bytes=max_bytes))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def number_of(value: Any) -> int | float | None:
    """A number that a float can hold, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    if not math.isfinite(number):
        return None
    return value if abs(value) <= MAX_EXACT else number


def text_of(value: Any, max_letters: int) -> str:
    """A short text that a reply can carry: half letters become question marks."""
    return str(value)[:max_letters].encode("utf-8", "replace").decode("utf-8")


def is_sendable(name: str) -> bool:
    """Whether a file's name is a text; on Linux it may be any bytes."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
