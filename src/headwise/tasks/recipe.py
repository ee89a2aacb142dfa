"""Reads and checks a recipe, the YAML file that describes data, model, training and decoding.

Every mechanism of the library is chosen by a word (`kind: …`) in a recipe. A recipe never names
code, an import path or a URL to execute. The resolved recipe, with every default written out, is
saved with the weights; training with it repeats the run.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headwise.errors import SettingsError
from headwise.settings import (
    DEFAULT_TASK,
    apply_overrides,
    check_settings,
    overrides_name,
    read_settings_file,
    write_yaml,
)
from headwise.settings.added_kinds import describe_words, words_in
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.arguments import require_texts
from headwise.tasks.recipe_files import find_recipe
from headwise.tasks.table import find_added_task, find_entry, task_words
from headwise.tasks.translation.recipe import TranslationRecipe


def load_recipe(name: str | Path, overrides: Sequence[str] = ()) -> AnyRecipe:
    """A checked recipe of any task from a path or a shipped name, with `key.path=value` changes."""
    path = find_recipe(name)
    before = read_settings_file(path)
    return check_recipe(_change(before, overrides), file=path, before=before if overrides else None)


def recipe_from(data: dict[str, Any], overrides: Sequence[str] = ()) -> AnyRecipe:
    """A checked recipe from plain data, as written in Python."""
    return check_recipe(_change(data, overrides))


def _change(data: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    return apply_overrides(data, require_texts(overrides, "overrides"), settings=_type_of(data))


def _type_of(data: Mapping[str, Any]) -> type[AnyRecipe] | None:
    """The recipe type of the task that the data names; without one it is a translation."""
    entry = find_entry(data.get("task", DEFAULT_TASK))
    return None if entry is None else entry.recipe_type


def check_recipe(
    data: Mapping[str, Any],
    *,
    file: Path | str | None = None,
    before: Mapping[str, Any] | None = None,
) -> AnyRecipe:
    """The recipe of whatever task the data names; without one it is a translation. `before`: as it
    stands in the file.
    """
    found = _type_of(data)
    if found is None:
        raise SettingsError(
            f"task: must be {' or '.join(map(repr, task_words()))}, not {data['task']!r:.60}",
            f"task：必须是 {' 或 '.join(map(repr, task_words()))}，而不是 {data['task']!r:.60}",
            file=file if before is None or before.get("task") == data["task"] else overrides_name(),
        )
    return check_settings(found, data, file=file, before=before)


def load_translation_recipe(name: str | Path, overrides: Sequence[str] = ()) -> TranslationRecipe:
    """`load_recipe` for what only translators can do."""
    return require_translation(load_recipe(name, overrides))


def require_translation(recipe: AnyRecipe) -> TranslationRecipe:
    if not isinstance(recipe, TranslationRecipe):
        raise SettingsError(
            f"the recipe's task is {recipe.task}; a recipe of task translation is needed here, "
            "e.g. `base` or `multi30k-en-de`; parameters, time and memory of this one: `headwise "
            "train RECIPE --check`, which trains nothing",
            f"该配方的任务是 {recipe.task}；此处需要 translation 任务的配方，例如 `base` 或 "
            "`multi30k-en-de`；要看该配方的参数量、时间和内存，请用 `headwise train RECIPE "
            "--check`（不训练）",
        )
    return recipe


def complete_recipe(data: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe saved by an older version, with the settings that came later at their defaults."""
    return check_recipe(data).model_dump(mode="json")


def recipe_to_save(recipe: AnyRecipe) -> dict[str, Any]:
    """The resolved recipe as plain data; where it uses words of other packages, with the
    packages."""
    words = [*find_added_task(recipe.task), *words_in(recipe)]
    return {**recipe.model_dump(mode="json"), **describe_words(words)}


def write_recipe(recipe: AnyRecipe) -> str:
    """The resolved recipe as YAML; `load_recipe` of it gives an equal recipe."""
    return write_yaml(recipe_to_save(recipe))
