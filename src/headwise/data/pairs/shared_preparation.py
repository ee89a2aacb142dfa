"""Prepared data that several runs share: made once, verified, and linked into each run's own
directory.

A hard link is a second name of a file: it takes no room, and a run that is copied, moved or left
alone when the others are deleted has its whole data with it. Nothing that is prepared is ever
written to in place (a change is a new file under the old name), so no run can change what another
reads; where the disk knows no links, files are copied.

    DIR/prepared/INPUTS/  tokenizers/  train/  valid/  prepared.json        one for each different `describe_inputs`
    DIR/runs/…/data/      the same files

Tested: linked data opens as what was prepared, a copy stands alone, damage is made good, and two
that prepare at once do it once.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from headwise.storage import INCOMPLETE


def link_prepared(prepared: Path, target: Path) -> None:
    """Give a run the data that was prepared for it; what it has already is left alone."""
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
    """One process at a time prepares in a directory; `waiting` is called if another one is at it,
    whose work is then found done.
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
