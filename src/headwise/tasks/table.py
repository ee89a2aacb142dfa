"""The table of tasks: one entry for each word that a recipe may name under `task:`.

An entry names the command that uses such a model and where the task's recipe type and its `Task`
are; those are imported when they are first needed, so that a recipe can be read without torch. Two
words may share a recipe type and a `Task`: classification and tagging do. Packages of other people add tasks by an
entry point of the group `headwise.tasks` that names such an entry (docs/guide, "Your own task").
"""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from headwise.errors import SettingsError
from headwise.tasks.any_recipe import AnyRecipe


@dataclass(frozen=True)
class TableEntry:
    """One word under `task:`, the command for its models, and where its parts are."""

    word: str
    """What a recipe writes under `task:`."""
    command: str
    """The command that uses a model of this task: `headwise <command>`."""
    recipe: str
    """The recipe type, as `module:name`."""
    task: str
    """The `Task`, as `module:name`."""

    @property
    def recipe_type(self) -> type[AnyRecipe]:
        return _import(self.recipe)

    @property
    def implementation(self) -> Any:
        return _instance(self.task)


TASKS = (
    TableEntry(
        "translation",
        "translate",
        "headwise.tasks.translation.recipe:TranslationRecipe",
        "headwise.tasks.translation.task:TranslationTask",
    ),
    TableEntry(
        "language_modeling",
        "predict",
        "headwise.tasks.language.recipe:LanguageRecipe",
        "headwise.tasks.language.task:LanguageTask",
    ),
    TableEntry(
        "word_vectors",
        "nearest",
        "headwise.tasks.word_vectors.recipe:WordVectorRecipe",
        "headwise.tasks.word_vectors.task:WordVectorTask",
    ),
    TableEntry(
        "classification",
        "classify",
        "headwise.tasks.labels.recipe:LabelRecipe",
        "headwise.tasks.labels.task:LabelTask",
    ),
    TableEntry(
        "tagging",
        "tag",
        "headwise.tasks.labels.recipe:LabelRecipe",
        "headwise.tasks.labels.task:LabelTask",
    ),
    TableEntry(
        "masked_language",
        "senses",
        "headwise.tasks.pretraining.masked_recipe:MaskedRecipe",
        "headwise.tasks.pretraining.masked_task:MaskedTask",
    ),
    TableEntry(
        "bidirectional_language",
        "senses",
        "headwise.tasks.pretraining.elmo_recipe:ElmoRecipe",
        "headwise.tasks.pretraining.elmo_task:ElmoTask",
    ),
)


def task_words() -> tuple[str, ...]:
    """Every word that a recipe may name."""
    return tuple(entry.word for entry in TASKS)


def find_entry(word: object) -> TableEntry | None:
    """The entry of a word; None if no task has it."""
    return next((entry for entry in TASKS if word == entry.word), None)


def find_task(recipe: AnyRecipe) -> Any:
    """The task of a recipe."""
    entry = find_entry(recipe.task)
    if entry is None:
        words = ", ".join(task_words())
        raise SettingsError(
            f"there is no task {recipe.task!r}; this version knows {words}",
            f"没有任务 {recipe.task!r}；此版本有 {words}",
        )
    return entry.implementation


def _import(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


@cache
def _instance(place: str) -> Any:
    return _import(place)()
