"""Refuses to write a comparison into a directory that holds something else.

A comparison makes `runs/` and other files in its directory. In the directory of a run, or in one
with files of the user's, they would be mixed with what is there and deleted with it. A directory is
accepted if it is new, empty, or holds what an earlier call of the same comparison has written.

Tested: a finished run, files of the user's, and directories of an unfinished comparison.
"""

from collections.abc import Collection
from pathlib import Path

from headwise.errors import UsageError
from headwise.tasks.bundle_form import RECIPE


def require_own_directory(path: Path, *, own: Collection[str]) -> None:
    """Refuse a directory with other files, unless one of the comparison's `own` is among them."""
    if not path.is_dir():
        return
    names = {child.name for child in path.iterdir()}
    if RECIPE in names:
        raise UsageError(
            f"{path} holds a run; choose a new or empty directory for the comparison",
            f"{path} 中有一次运行；请为比较另选新的或空的目录",
        )
    if names and names.isdisjoint(own):
        raise UsageError(
            f"{path} holds files that are not a comparison; choose a new or empty directory",
            f"{path} 中有不属于比较的文件；请选择新的或空的目录",
        )
