"""A finished tiny run to damage, and the table that `make reliability` prints at the end."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.survival.figures import Figures, Row, print_table
from tests.tasks.tiny import train_tiny

FIGURES = pytest.StashKey[Figures]()
LENGTH = ("training.steps=12", "training.checkpoint_every=4", "training.validate_every=4")


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator's run with two checkpoints, best weights, data and a bundle; not to be changed."""
    directory = tmp_path_factory.mktemp("runs") / "run"
    train_tiny(directory, [*LENGTH, "data.test=null"])
    return directory


@pytest.fixture(name="run")
def _run(finished_run: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flushing protects from a power cut, which no test makes: a killed process leaves what it wrote."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Callable[[str, str, str], None]:
    """record(name, what was done, result): a line of the table."""
    rows = request.config.stash.setdefault(FIGURES, [])
    return lambda name, what, result: rows.append(Row(name, what, result))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = config.stash.get(FIGURES, [])
    if rows and config.getoption("markexpr") != "not prove":
        terminalreporter.section("survival")
        for line in print_table(rows):
            terminalreporter.write_line(line)
