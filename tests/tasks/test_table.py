"""The table of tasks: one entry for each word, each with a command that exists, and tasks of
other packages."""

import importlib
import sys
from pathlib import Path

import pytest

from headwise.cli.terminal.display import print_summary
from headwise.errors import SettingsError
from headwise.tasks.accepted_models import explain_task
from headwise.tasks.recipe import recipe_from
from headwise.tasks.run_start import RunSummary
from headwise.tasks.table import TASKS, find_entry, task_words
from tests.settings.test_added_kinds import install
from tests.tasks.every_task import recipe_of


def test_every_word_has_one_entry_and_a_command_that_exists() -> None:
    assert len(set(task_words())) == len(TASKS)
    for entry in TASKS:
        assert find_entry(entry.word) is entry
        assert importlib.import_module(f"headwise.cli.{entry.command}").run


@pytest.mark.parametrize(("word", "command"), [("classification", "classify"), ("tagging", "tag")])
def test_words_that_share_a_task_name_their_own_command(
    word: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = explain_task(word, ("a translator", "翻译模型"), tmp_path, example="pocket")
    assert f"use `headwise {command}` with this one" in str(error)
    print_summary(RunSummary(tmp_path, recipe_of(word, tmp_path), {}))
    assert f"headwise {command} --model" in capsys.readouterr().out


def test_a_form_that_is_read_without_torch_is_that_of_the_recipe_type() -> None:
    for entry in TASKS:
        assert entry.form_place
        assert entry.form is entry.recipe_type.bundle_form


MODULE = """
from headwise.tasks.table import TableEntry
GOOD = TableEntry("good", "", "headwise.tasks.language.recipe:LanguageRecipe", "nowhere:Task")
PARTS = TableEntry("parts", "", "nowhere.recipe:Recipe", "nowhere.task:Task")
RECIPE = "headwise.tasks.language.recipe:LanguageRecipe"
NUMBER = TableEntry("recipe_is_a_number", "", "sys:maxsize", "nowhere.task:Task")
OTHER = TableEntry("another", "", RECIPE, "nowhere.task:Task")
FORMLESS = TableEntry("formless", "", RECIPE, "nowhere.task:Task", form_place="sys:maxsize")
NO_TASK = TableEntry("no_task", "", RECIPE, "somebody:NoTask")
FAILS = TableEntry("fails", "", RECIPE, "somebody:Fails")
ODD = TableEntry("odd", "", RECIPE, "somebody:Odd")
class NoTask: ...
class NoError(BaseException): ...
def __getattr__(name):
    from headwise.tasks.task import TrainedTask
    if name == "Odd":
        raise NoError("here")
    return type(name, (TrainedTask,), {})
"""
ENTRIES = """[headwise.tasks]
good = somebody:GOOD
formless = somebody:FORMLESS
parts = somebody:PARTS
wrong = missing_module:MODULE
number = sys:maxsize
recipe_is_a_number = somebody:NUMBER
mismatch = somebody:OTHER
no_task = somebody:NO_TASK
fails = somebody:FAILS
odd = somebody:ODD
translation = somebody:GOOD
"""


@pytest.fixture
def somebody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "somebody.py").write_text(MODULE)
    install(tmp_path, "somebodys-tasks", ENTRIES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "somebody", raising=False)
    return tmp_path


def test_words_of_packages_are_listed_without_importing_them(somebody: Path) -> None:
    assert task_words()[len(TASKS) :] == (
        "fails",
        "formless",
        "good",
        "mismatch",
        "no_task",
        "number",
        "odd",
        "parts",
        "recipe_is_a_number",
        "wrong",
    )
    assert "somebody" not in sys.modules


def test_a_built_in_task_wins(somebody: Path) -> None:
    assert find_entry("translation") is TASKS[0]
    assert "somebody" not in sys.modules


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("wrong", "package somebodys-tasks gives the task 'wrong', but importing it failed"),
        ("number", r"package somebodys-tasks gives the task 'number' as \d+, but an instance of "),
        ("parts", "nowhere.recipe:Recipe, a part of a task that another package adds, cannot be"),
        (
            "recipe_is_a_number",
            r"sys:maxsize.*\d+ is no subclass of headwise.tasks.any_recipe.AnyR",
        ),
        ("mismatch", "the entry point 'mismatch' names the task 'another'"),
        ("absent", "task: must be 'translation' or .*'wrong', not 'absent'"),
    ],
)
def test_what_is_wrong_with_a_package_is_told(somebody: Path, word: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        recipe_from({"task": word})


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("no_task", r"somebody:NoTask.*NoTask'> is no subclass of headwise.tasks.task.TrainedTask"),
        ("odd", r"somebody:Odd, a part .* cannot be used \(NoError: here\); mend"),
        ("fails", r"somebody:Fails.*cannot be used \(TypeError: Can't instantiate abstract"),
    ],
)
def test_a_task_that_cannot_be_made_is_told(somebody: Path, word: str, message: str) -> None:
    entry = find_entry(word)
    assert entry is not None
    with pytest.raises(SettingsError, match=message):
        _ = entry.implementation


def test_the_form_of_bundles_of_a_package(somebody: Path) -> None:
    """By default it is that of the recipe type."""
    good, formless = find_entry("good"), find_entry("formless")
    assert good is not None
    assert formless is not None
    assert good.form is good.recipe_type.bundle_form
    with pytest.raises(SettingsError, match=r"sys:maxsize.*\d+ is no headwise.tasks.bundle_form"):
        _ = formless.form


def test_two_packages_with_one_task_are_refused(somebody: Path) -> None:
    install(somebody, "others-tasks", "[headwise.tasks]\ngood = somebody:GOOD\n")
    with pytest.raises(SettingsError, match=r"several packages \(others-tasks, somebodys-tasks\)"):
        recipe_from({"task": "good"})
