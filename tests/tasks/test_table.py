"""The table of tasks: one entry for each word, each with a command of its own that exists."""

import importlib
from pathlib import Path

import pytest

from headwise.cli.terminal.display import print_summary
from headwise.tasks.bundle import explain_task
from headwise.tasks.run_start import RunSummary
from headwise.tasks.table import TASKS, find_entry, task_words
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
