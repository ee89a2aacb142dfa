"""The table of tasks: one entry for each task that a recipe may name.

An entry names the command that uses such a model, and the modules of the task's recipe class, its
`Task` and the form of its bundles (the files that they hold). These modules are imported on first
use. That of the form does not load torch, so that the command line refuses a wrong model at once.
Two tasks may share a recipe class and a `Task`: classification and tagging do.

Another package can add a task by an entry point of the group `headwise.tasks` that names such an
entry (docs/guide, chapter 30, "Plugins"):

    [project.entry-points."headwise.tasks"]
    regression = "headwise_regression:TASK"

A built-in task has precedence. Only the package that offers the task of the recipe is imported, and
only if the user has installed it (settings/added_kinds.py).

Tested with examples/plugin, over every promise of a run, and with packages that are broken.
"""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from headwise.errors import SettingsError
from headwise.language import say
from headwise.settings.added_kinds import (
    TASK_GROUP,
    AddedWord,
    added_words,
    describe_word,
    is_fault,
    load_value,
    reason_of,
)
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.bundle_form import BundleForm

GROUP = TASK_GROUP
"""The group of entry points through which other packages add tasks."""


@dataclass(frozen=True)
class TableEntry:
    """One word under `task:`, the command for its models, and where its parts are."""

    word: str
    """What a recipe writes under `task:`."""
    command: str
    """The command that uses a model of this task: `headwise <command>`. Empty: no command does, the
    model is used from Python."""
    recipe: str
    """The recipe type, as `module:name`."""
    task: str
    """The `Task`, as `module:name`."""
    group: tuple[str, str] = ("others", "其他")
    """The heading of its recipes in `headwise recipes`, in English and Chinese."""
    title: tuple[str, str] | None = None
    """What the task is called, in English and Chinese; None: as its word."""
    form_place: str = ""
    """The `BundleForm`, as `module:name`, in a module that does not load torch; empty: the recipe
    type's."""

    @property
    def name(self) -> tuple[str, str]:
        """What the task is called, in English and Chinese."""
        return self.title or (self.word.replace("_", " "), self.word)

    @property
    def recipe_type(self) -> type[AnyRecipe]:
        found = _import(self.recipe)
        if not (isinstance(found, type) and issubclass(found, AnyRecipe)):
            raise _explain(self.recipe, f"{found!r} is no subclass of {_name(AnyRecipe)}")
        return found

    @property
    def form(self) -> BundleForm:
        """What its bundles are called and consist of."""
        if not self.form_place:
            return self.recipe_type.bundle_form
        found = _import(self.form_place)
        if not isinstance(found, BundleForm):
            raise _explain(self.form_place, f"{found!r} is no {_name(BundleForm)}")
        return found

    @property
    def implementation(self) -> Any:
        return _instance(self.task)


_STARTS = ("what others start from", "供其他模型起步")

TASKS = (
    TableEntry(
        "translation",
        "translate",
        "headwise.tasks.translation.recipe:TranslationRecipe",
        "headwise.tasks.translation.task:TranslationTask",
        ("translators", "翻译模型"),
        title=("translation", "翻译"),
        form_place="headwise.tasks.translation.form:FORM",
    ),
    TableEntry(
        "language_modeling",
        "predict",
        "headwise.tasks.language.recipe:LanguageRecipe",
        "headwise.tasks.language.task:LanguageTask",
        ("language models", "语言模型"),
        title=("language model", "语言模型"),
        form_place="headwise.tasks.language.form:FORM",
    ),
    TableEntry(
        "word_vectors",
        "nearest",
        "headwise.tasks.word_vectors.recipe:WordVectorRecipe",
        "headwise.tasks.word_vectors.task:WordVectorTask",
        _STARTS,
        title=("word vectors", "词向量"),
        form_place="headwise.tasks.word_vectors.form:FORM",
    ),
    TableEntry(
        "classification",
        "classify",
        "headwise.tasks.labels.recipe:LabelRecipe",
        "headwise.tasks.labels.task:LabelTask",
        ("a label for each text", "文本分类"),
        title=("classification", "分类"),
        form_place="headwise.tasks.labels.form:FORM",
    ),
    TableEntry(
        "tagging",
        "tag",
        "headwise.tasks.labels.recipe:LabelRecipe",
        "headwise.tasks.labels.task:LabelTask",
        ("a label for each word", "逐词标注"),
        title=("tagging", "标注"),
        form_place="headwise.tasks.labels.form:FORM",
    ),
    TableEntry(
        "masked_language",
        "senses",
        "headwise.tasks.pretraining.masked_recipe:MaskedRecipe",
        "headwise.tasks.pretraining.masked_task:MaskedTask",
        _STARTS,
        title=("masked language model", "掩码语言模型"),
        form_place="headwise.tasks.pretraining.forms:MASKED_FORM",
    ),
    TableEntry(
        "bidirectional_language",
        "senses",
        "headwise.tasks.pretraining.elmo_recipe:ElmoRecipe",
        "headwise.tasks.pretraining.elmo_task:ElmoTask",
        _STARTS,
        title=("two-way language model", "双向语言模型"),
        form_place="headwise.tasks.pretraining.forms:ELMO_FORM",
    ),
)


def name_task(word: str) -> str:
    """What a task is called, in the language of the user; the word itself where no task has it."""
    entry = find_entry(word)
    return word if entry is None else say(*entry.name)


def task_words() -> tuple[str, ...]:
    """Every word that a recipe may name: the built-in ones, then those of installed packages."""
    built_in = [entry.word for entry in TASKS]
    return (*built_in, *(word for word in added_words(GROUP) if word not in built_in))


def find_entry(word: object) -> TableEntry | None:
    """The entry of a word; None if no task has it."""
    built_in = next((entry for entry in TASKS if entry.word == word), None)
    if built_in is not None:
        return built_in
    found = load_value(GROUP, word, TableEntry)
    if found is not None and found.word != word:
        raise _explain(found.task, f"the entry point {word!r} names the task {found.word!r}")
    return found


def find_task(recipe: AnyRecipe) -> Any:
    """The task of a recipe: a `TrainedTask` or a `SinglePassTask`."""
    entry = find_entry(recipe.task)
    if entry is None:
        words = ", ".join(task_words())
        raise SettingsError(
            f"there is no task {recipe.task!r}; this version knows {words}",
            f"没有任务 {recipe.task!r}；此版本有 {words}",
        )
    return entry.implementation.for_recipe(recipe)


def added_tasks() -> list[AddedWord]:
    """The tasks of installed packages, each with its package; nothing is imported for the
    answer."""
    return [describe_word(GROUP, word) for word in task_words()[len(TASKS) :]]


def find_added_task(word: str) -> list[AddedWord]:
    """The task of this word, if an installed package adds it; the packages are looked through only
    for a word that is not built in."""
    if any(entry.word == word for entry in TASKS):
        return []
    return [one for one in added_tasks() if one.word == word]


def _import(place: str) -> Any:
    """What `module:name` names; a failure in another package is explained."""
    module, _, name = place.partition(":")
    try:
        return getattr(import_module(module), name)
    except BaseException as error:
        if place.startswith("headwise.") or not is_fault(error):
            raise
        raise _explain(place, reason_of(error)) from error


@cache
def _instance(place: str) -> Any:
    from headwise.tasks.task import SinglePassTask, Task, TrainedTask

    found = _import(place)
    if not (isinstance(found, type) and issubclass(found, Task)):
        kinds = f"{_name(TrainedTask)} or {SinglePassTask.__name__}"
        raise _explain(place, f"{found!r} is no subclass of {kinds}")
    try:
        return found()
    except BaseException as error:
        if place.startswith("headwise.") or not is_fault(error):
            raise
        raise _explain(place, reason_of(error)) from error


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"


def _explain(place: str, reason: str) -> SettingsError:
    """A part of a task that another package adds cannot be used."""
    return SettingsError(
        f"{place}, a part of a task that another package adds, cannot be used ({reason}); "
        "mend or reinstall the package",
        f"其他软件包所加任务的一部分 {place} 无法使用（{reason}）；请修复或重新安装该软件包",
    )
