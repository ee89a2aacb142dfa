"""A task is named in its own folder and in the table of tasks, and nowhere else.

Whoever needs to know something about a task asks its table entry, its recipe type or its `Task`. A
literal of its word elsewhere is a list that a new task would have to be added to, and that a task
of another package cannot be added to. The same holds for a check of the type of a recipe, and for
the metrics and other numbers that a task reports.
"""

import ast
import re
from pathlib import Path

from headwise.tasks.table import TASKS
from tests.architecture.source_tree import MODULES, nodes_of, text_of
from tests.architecture.source_tree import SOURCE as ROOT

TABLE = "tasks/table.py"
WORDS = {entry.word for entry in TASKS}
RECIPES = {entry.recipe_type.__name__ for entry in TASKS}
FOLDERS = {entry.task.removeprefix("headwise.").split(".")[1] for entry in TASKS}

NAMED = {
    # The file, and why it may name these words.
    "cli/schema.py": "translation: the default of the command",
    "comparing/lineage.py": "language_modeling: the table of this family of models",
    "data/labels/choices.py": "the advice to set another task for the form of a corpus",
    "explorer/static/app/views/vectors.js": "word_vectors: a kind of model in the server's list",
    "models/__init__.py": "word_vectors: a module of this folder",
    "serving/api/language.py": "word_vectors: a kind of model in the server's list",
    "serving/api/translation_stream.py": "translation: the name of an event",
    "serving/schemas/models.py": "word_vectors: a kind of model in the server's list",
    "serving/work/loaded_models.py": "the models for which the server has routes",
    "tasks/memory_building.py": "the tasks whose models predict token by token, as a memory needs",
    "tasks/accepted_models.py": "word_vectors: vectors that were imported have no recipe",
    "settings/reading.py": "translation: what a recipe without `task:` is for",
}
OTHER_NUMBERS = {
    # Numbers of a task that are also called as something that every run has, and what that is.
    "loss": "the loss of a training step",
    "perplexity": "a word of a metric's name that says which way it is better",
}
CHECKED = {
    # The file, and why it may ask whether a recipe is of a certain type.
    "tasks/recipe.py": "translation: for what only translators can do",
}


def _place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _is_of_a_task(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return parts[0] == "tasks" and parts[1] in FOLDERS


SOURCES = [
    path
    for path in (*MODULES, *sorted((ROOT / "explorer/static").rglob("*.js")))
    if not _is_of_a_task(path) and _place(path) != TABLE
]


def _literals(path: Path) -> set[str]:
    text = text_of(path)
    if path.suffix == ".js":
        # Of the page, names of tasks; a class of CSS is none.
        return set(re.findall(r"(?<!class: )[\"'`](\w+)[\"'`]", text))
    return {
        node.value
        for node in nodes_of(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def _calls_isinstance(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "isinstance"


def _checked_types(path: Path) -> set[str]:
    """Recipe types in calls of isinstance and in patterns of a match."""
    found = set()
    if path.suffix != ".py":
        return found
    for node in nodes_of(path):
        if isinstance(node, ast.Call) and _calls_isinstance(node):
            found |= set(re.findall(r"\w+", ast.unparse(node.args[1])))
        elif isinstance(node, ast.MatchClass):
            found.add(ast.unparse(node.cls))
    return found & RECIPES


def test_no_file_names_a_task_that_is_not_its_own() -> None:
    named = {_place(path): sorted(_literals(path) & WORDS) for path in SOURCES}
    found = {place: words for place, words in named.items() if words}
    assert {place: words for place, words in found.items() if place not in NAMED} == {}
    assert set(NAMED) <= set(found), "listed, but names no task by now"


def test_no_file_asks_for_the_recipe_type_of_a_task() -> None:
    checked = {_place(path): sorted(_checked_types(path)) for path in SOURCES}
    found = {place: types for place, types in checked.items() if types}
    assert {place: types for place, types in found.items() if place not in CHECKED} == {}
    assert set(CHECKED) <= set(found), "listed, but asks for no type by now"


METRIC_KEYS = {
    key
    for entry in TASKS
    for key in (*entry.recipe_type.metrics, *entry.recipe_type.results)
    if key not in OTHER_NUMBERS
}
SHOWING = (
    "tasks/result_rows.py",
    "tasks/run.py",
    "cli/terminal/display.py",
    "explorer/data/run_logs.py",
    "explorer/static/app/run_metrics.js",
    "explorer/static/app/views/runs.js",
    "training/early_stopping.py",
)
"""Files that show or judge the numbers of a run, of whatever task."""


def test_what_shows_results_names_no_number_of_a_task() -> None:
    named = {place: sorted(_literals(ROOT / place) & METRIC_KEYS) for place in SHOWING}
    assert {place: keys for place, keys in named.items() if keys} == {}
