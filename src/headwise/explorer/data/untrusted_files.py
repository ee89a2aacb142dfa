"""Safe reading of files in a directory that others write into.

The page shows a directory of runs to everyone who may open it. So a file is opened only if it is a
regular file (reading a pipe could wait forever), lies inside the directory after all links are
followed, and is not too large. Values are checked too: a number must fit into a float, and a text
must be valid Unicode.

Tested against: pipes, links that lead out, lone surrogates, numbers of 400 digits.
"""

import json
import math
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

MAX_EXACT = 2**53
"""Integers up to this size are exact in JavaScript."""


def lies_inside(root: Path, path: Path) -> bool:
    """Whether a path, after following its links, lies below the root."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def is_file_inside(root: Path, path: Path) -> bool:
    """Whether a path is a regular file below the root."""
    try:
        return stat.S_ISREG(os.stat(os.path.realpath(path)).st_mode) and lies_inside(root, path)
    except (OSError, ValueError):
        return False


def open_inside(root: Path, path: Path) -> BinaryIO:
    """Open a regular file below the root for reading; anything else is an OSError."""
    if not is_file_inside(root, path):
        raise FileNotFoundError(2, "no ordinary file inside the directory")
    # The file may have been replaced since the check: links are not followed and pipes do not
    # block.
    descriptor = os.open(os.path.realpath(path), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError(2, "no ordinary file inside the directory")
    return os.fdopen(descriptor, "rb")


def read_inside(root: Path, path: Path, *, max_bytes: int) -> bytes:
    """The content of a file of at most `max_bytes`."""
    with open_inside(root, path) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(27, "the file is too large")
    return content


def read_json_inside(root: Path, path: Path, *, max_bytes: int) -> Any:
    """The JSON of a small file; OSError or ValueError if it cannot be read."""
    try:
        return json.loads(read_inside(root, path, max_bytes=max_bytes))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def number_of(value: Any) -> int | float | None:
    """The value if it is a number that fits into a float, else None."""
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
    """The value as a short text; lone surrogates become question marks."""
    return str(value)[:max_letters].encode("utf-8", "replace").decode("utf-8")


def is_sendable(name: str) -> bool:
    """Whether a file name is valid Unicode; on Linux it may be any bytes."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
