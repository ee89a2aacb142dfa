"""Opens a run directory and prepares the run's data; `RunSummary` holds its results at the end.

If preparing the data fails, or the run is refused before its first update, what was made for it is
removed again, so bad input leaves nothing behind. `run.py` uses this for every task.
"""

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from headwise.errors import DataError, UsageError
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.recipe import complete_recipe, recipe_to_save
from headwise.tasks.run_notes import NOTES
from headwise.training.run_directory import RunDirectory, has_learnt

Prepared = TypeVar("Prepared")


@dataclass(frozen=True)
class RunSummary:
    """What a finished run has to show."""

    directory: Path | None
    recipe: AnyRecipe
    results: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    """What must be known to read the results."""

    @property
    def model(self) -> Path | None:
        return None if self.directory is None else self.directory / "model"

    def as_dict(self) -> dict[str, Any]:
        told = {"notes": list(self.notes)} if self.notes else {}
        return {"model": None if self.model is None else str(self.model), **self.results, **told}


@contextlib.contextmanager
def begun_run(
    directory: Path, recipe: AnyRecipe, prepare: Callable[[], Prepared], *, resume: bool
) -> Iterator[tuple[RunDirectory, Prepared]]:
    """Open the run, do what comes first in it, and close it in the end.

    If that fails, or the run is refused before its first update, what was made for it is removed
    again.
    """
    new = [path for path in (directory, *directory.parents) if not path.exists()]
    had_data = (directory / "data").exists()
    opened = _open_run(directory, recipe, new, resume=resume)
    is_prepared = False
    try:
        with opened:
            prepared = prepare()
            is_prepared = True
            yield opened, prepared
    except BaseException as error:
        is_refused = isinstance(error, UsageError | DataError) and not _has_begun(opened)
        if not opened.resumed and (is_refused or not is_prepared):
            _take_away(directory, new, had_data=had_data)
        raise


def _has_begun(opened: RunDirectory) -> bool:
    """Whether there is work that must not be removed."""
    return opened.is_updated or has_learnt(opened.path)


def _open_run(
    directory: Path, recipe: AnyRecipe, new: Sequence[Path], *, resume: bool
) -> RunDirectory:
    try:
        return RunDirectory.open(
            directory,
            recipe=recipe_to_save(recipe),
            resume=resume,
            complete=complete_recipe,
        )
    except BaseException:
        _remove_empty(new)
        raise


def _take_away(directory: Path, new: Sequence[Path], *, had_data: bool) -> None:
    """Undo the start of a run: what it wrote, and the directories that were made for it.

    Data that were prepared before this start stay.
    """
    names = ("recipe.yaml", "log.jsonl", ".lock", "tensorboard", NOTES)
    for name in names if had_data else ("data", *names):
        path = directory / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    _remove_empty(new)


def _remove_empty(directories: Sequence[Path]) -> None:
    for path in directories:
        with contextlib.suppress(
            OSError
        ):  # it was never made, or somebody else put something there
            path.rmdir()
