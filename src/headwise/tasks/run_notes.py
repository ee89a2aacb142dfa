"""Saves the warnings of a run in its directory, and shows them again when the run is resumed.

For example, a run that learns from one corpus and is measured on another gets a warning when it
begins (measured_corpora.py). The warning comes from `key=value` arguments on the command line, and
a command with `--resume` has none. So the run directory keeps it, with the corpora it speaks of:

    runs/mine/notes.json   {"notes": ["data.train is …"], "corpora": {"train": …}}

Tested: a resumed run shows the note; new corpora remove it; only the first of several processes
shows it.
"""

import contextlib
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from headwise.storage import read_json, write_json
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.measured_corpora import note_on_measuring
from headwise.training.run_directory import RunDirectory

logger = logging.getLogger(__name__)

NOTES = "notes.json"


@contextlib.contextmanager
def warning_once() -> Iterator[None]:
    """Every process of torchrun makes the same checks; the first alone warns of what they find."""
    package = logging.getLogger("headwise")
    level = package.level
    if int(os.environ.get("RANK", "0")) > 0:
        package.setLevel(logging.ERROR)
    try:
        yield
    finally:
        package.setLevel(level)


def warn_of_measuring(recipe: AnyRecipe | str | Path, overrides: Sequence[str]) -> tuple[str, ...]:
    """A warning that must stand beside the results too: measured on another corpus than trained."""
    note = note_on_measuring(recipe, overrides)
    if note is None:
        return ()
    with warning_once():
        logger.warning("%s", note)
    return (note,)


def keep_notes(opened: RunDirectory, recipe: AnyRecipe, notes: tuple[str, ...]) -> tuple[str, ...]:
    """The warnings of the run when it began; a resumed run shows them again.

    The corpora are saved beside the notes, because the notes do not apply to other corpora.
    """
    file, corpora = opened.path / NOTES, _measured_corpora(recipe)
    if not opened.resumed:
        file.unlink(missing_ok=True)
        if notes:
            write_json(file, {"notes": list(notes), "corpora": corpora})
        return notes
    if notes or not file.is_file():
        return notes
    kept = read_json(file)
    if kept["corpora"] != corpora:
        return ()
    for note in kept["notes"]:
        logger.warning("%s", note)
    return tuple(kept["notes"])


def _measured_corpora(recipe: AnyRecipe) -> dict[str, Any]:
    data = recipe.model_dump(mode="json").get("data") or {}
    return {part: data.get(part) for part in ("train", "valid", "test")}
