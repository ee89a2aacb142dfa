"""Prepared data that several runs share: made once, verified, and hard-linked into each run.

A hard link is a second name of a file: it needs no space, and each run keeps complete data when it
is copied or moved, or when the other runs are deleted. Prepared files are never changed in place (a
change is a new file under the old name), so no run can change the data of another. On file systems
without hard links, files are copied.

    DIR/prepared/INPUTS/  tokenizers/  train/  valid/  prepared.json    one per `describe_inputs`
    DIR/runs/…/data/      the same files

Tested: linked data equal the prepared data; a copy is independent; damage is repaired; two
processes that prepare at once do it once.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from headwise.storage import INCOMPLETE


def link_prepared(prepared: Path, target: Path) -> None:
    """Link prepared data into a run; data that the run already has are left alone."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(target.name + INCOMPLETE)
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        shutil.copytree(prepared, temporary, copy_function=_link)
        os.rename(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk, or one without links
        shutil.copy2(source, target)


@contextlib.contextmanager
def preparing_alone(directory: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """One process at a time prepares in a directory.

    `waiting` is called if another process is preparing; its result is then used.
    """
    directory.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # not a POSIX system: there is no such lock
        yield
        return
    with (directory / ".lock").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
