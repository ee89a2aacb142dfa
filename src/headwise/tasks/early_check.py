"""Refuses mistakes in a recipe and its overrides before torch is loaded.

    headwise train pocket --run runs/first training.stesp=100

The check takes the outline of the recipe's type (settings/outline.py) in place of the type itself,
and the same functions, hence the same words. It refuses only what the check of `recipe.py` refuses
with the same message. What it cannot be sure of passes, and is checked once torch is loaded: kinds
and tasks of other packages, and values that a validator outside of the outline would look at,
unless they are those of a shipped recipe.

Tested against: the messages of `load_recipe`, for many mistakes in recipes of every task.
"""

import logging
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pydantic

from headwise.errors import SettingsError
from headwise.settings import DEFAULT_TASK, check_settings, read_settings_file
from headwise.settings.outline import note_unseen, outline_of
from headwise.settings.overrides import Note, change_values, tell_notes
from headwise.tasks.recipe_files import find_recipe, recipes_directory

logger = logging.getLogger(__name__)
NAMES_OF_TEXT = frozenset(("train", "valid", "test", "source", "target", "language"))
"""Keys under `data` that say which text is read. If no other value of a shipped recipe is changed,
nothing else can be wrong."""


def refuse_early(
    name: str | Path, overrides: Sequence[str] = (), *, reads_text: bool = False
) -> None:
    """Raise the error that `load_recipe` would raise, if it is certain already; if the command
    reads the text, that of `check_named_files` too."""
    path = find_recipe(name)
    is_shipped = path.parent == recipes_directory()
    before = read_settings_file(path)
    outline = outline_of(before.get("task", DEFAULT_TASK))
    if outline is None:
        return
    notes: list[Note] = []
    with note_unseen() as unseen:
        try:
            after, notes = change_values(before, overrides, settings=outline)
            if after.get("task") != before.get("task"):
                return
            recipe = check_settings(outline, after, file=path, before=before if overrides else None)
        except SettingsError as error:
            refused = error
        else:
            if reads_text and is_shipped and _without_names(before) == _without_names(after):
                _check_files(recipe, path, overrides, notes)
            return
    if _names_other_packages(refused):
        return
    with note_unseen() as known:
        if is_shipped:
            check_settings(outline, before)
    if all(one in known for one in unseen):
        tell_notes(notes)
        raise refused


def _without_names(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe without what says which text is read."""
    data = recipe.get("data")
    rest = data if isinstance(data, Mapping) else {}
    return {
        **recipe,
        "data": {key: value for key, value in rest.items() if key not in NAMES_OF_TEXT},
    }


def _check_files(
    recipe: pydantic.BaseModel, path: Path, overrides: Sequence[str], notes: Sequence[Note]
) -> None:
    from headwise.tasks.measured_corpora import note_on_measuring
    from headwise.tasks.named_files import are_files_missing, check_corpora

    data = getattr(recipe, "data", None)
    if are_files_missing(data):
        tell_notes(notes)
        if note := note_on_measuring(path, overrides):
            logger.warning("%s", note)
        check_corpora(data)


def _names_other_packages(error: SettingsError) -> bool:
    """Whether a kind that the outline does not know is that of an installed package."""
    cause = error.__cause__
    if not isinstance(cause, pydantic.ValidationError):
        return False
    unknown = {one["ctx"]["tag"] for one in cause.errors() if one["type"] == "union_tag_invalid"}
    return any(
        entry.group.startswith("headwise.") for tag in unknown for entry in entry_points(name=tag)
    )
