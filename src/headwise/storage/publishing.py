"""Publishes a directory of results (checkpoint, bundle, tokenised corpus) completely or not at all.

It is filled under a temporary name, every file is flushed and listed in the manifest, and one
rename publishes it. If it replaces an older directory, the two names are exchanged in one step
(renameat2 with RENAME_EXCHANGE, Linux): at any time the name refers to the old or to the new
directory. If the system or the file system cannot exchange, the old one is first renamed to
`*.replaced`; a kill between the two renames leaves the name empty, and `remove_leftovers` restores
the old one.

Tested by ending the process before every line of this file, with and without the exchange.
"""

import contextlib
import ctypes
import functools
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from headwise.errors import UsageError
from headwise.storage.files import INCOMPLETE, flush_to_disk
from headwise.storage.manifest import refuse_sealed, write_manifest

RETIRED = ".retired"
"""Suffix of a directory that is being deleted."""
REPLACED = ".replaced"
"""Suffix of a directory that is being replaced."""
_TEMPORARY = re.compile(
    rf"(.+?)(?:\.\d+)?(?:{'|'.join(map(re.escape, (INCOMPLETE, RETIRED, REPLACED)))})", re.DOTALL
)
"""A temporary name: that of the result, for a file the number of the process, and a suffix."""
_HERE = -100  # AT_FDCWD: names are relative to the working directory
_EXCHANGE = 2  # RENAME_EXCHANGE


@contextlib.contextmanager
def publish_directory(path: Path, *, kind: str, replace: bool = False) -> Iterator[Path]:
    """A temporary directory to fill; on success the manifest is added and it is renamed to `path`.

    With `replace` an existing directory is replaced at the last moment; otherwise it is an error.
    If `path` is a symbolic link, the link stays and the directory it points to is replaced, because
    whoever made the link chose that disk. After a kill, leftovers are then next to that directory,
    where `remove_leftovers` of the folder of the link does not look.
    """
    path = Path(os.path.realpath(path)) if path.is_symlink() else path
    if not replace:
        refuse_existing(path)
        refuse_sealed(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + INCOMPLETE)
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        write_manifest(temporary, kind=kind)
        flush_to_disk(temporary)
        if path.exists():
            _replace(path, temporary)
        else:
            os.rename(temporary, path)
            flush_to_disk(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def refuse_existing(path: Path) -> None:
    if path.exists():
        raise UsageError(
            f"{path} exists already; choose another name or remove it",
            f"{path} 已存在；请换个名字或先删除",
        )


def _replace(path: Path, new: Path) -> None:
    """Put `new` in the place of `path`; the old one is deleted once the exchange is on disk."""
    old = new
    if not _exchange(new, path):
        old = path.with_name(path.name + REPLACED)
        shutil.rmtree(old, ignore_errors=True)
        try:
            os.rename(path, old)
            os.rename(new, path)
        except BaseException:
            if not path.exists():
                os.rename(old, path)
            raise
    flush_to_disk(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def _exchange(first: Path, second: Path) -> bool:
    """Swap two names in one step; False if that is not possible."""
    rename = _system_rename()
    return (
        rename is not None
        and rename(_HERE, os.fsencode(first), _HERE, os.fsencode(second), _EXCHANGE) == 0
    )


@functools.cache
def _system_rename() -> Callable[[int, bytes, int, bytes, int], int] | None:
    """renameat2 of the C library; None on a system without it."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return None
    rename.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    rename.restype = ctypes.c_int
    return rename


def remove_directory(path: Path) -> None:
    """Delete a published directory; it is renamed first, so that a kill leaves nothing
    incomplete.
    """
    retired = path.with_name(path.name + RETIRED)
    shutil.rmtree(retired, ignore_errors=True)
    path.rename(retired)
    shutil.rmtree(retired, ignore_errors=True)


def find_leftovers(path: Path, own: re.Pattern[str]) -> list[Path]:
    """What a kill left in a directory: unpublished, being deleted, or being replaced.

    `own` matches the relative paths that the writer of this directory writes to: a user's
    `notes.incomplete` has such a suffix too, and is none of them.
    """
    children = [*path.glob("*"), *path.glob("*/*")]
    left = {child for child in children if is_leftover(child.relative_to(path).as_posix(), own)}
    return sorted(child for child in left if child.parent not in left)


def is_leftover(name: str, own: re.Pattern[str]) -> bool:
    """Whether a path is the temporary name of one that `own` matches."""
    original = _TEMPORARY.fullmatch(name)
    return original is not None and own.fullmatch(original[1]) is not None


def remove_leftovers(path: Path, own: re.Pattern[str]) -> None:
    """Clean up after a kill; a replaced directory without a successor is restored."""
    for child in find_leftovers(path, own):
        original = child.with_name(child.name.removesuffix(REPLACED))
        if child.name.endswith(REPLACED) and not original.exists():
            child.rename(original)
        elif child.is_dir() and not child.is_symlink():
            shutil.rmtree(child)
        else:
            child.unlink()
