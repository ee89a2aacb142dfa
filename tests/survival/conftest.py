"""A finished tiny run to damage, and the table that `make reliability` prints at the end."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.survival.background import BUNDLE, OWN_MOUNTS, Background, may_mount
from tests.survival.figures import Figures, Row, print_table
from tests.tasks.tiny import train_tiny

FIGURES = pytest.StashKey[Figures]()
NUM_KILLS = 4
LENGTH = ("training.steps=12", "training.checkpoint_every=4", "training.validate_every=4")


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator's run with two checkpoints, best weights, data and a bundle; not to be
    changed."""
    directory = tmp_path_factory.mktemp("runs") / "run"
    train_tiny(directory, [*LENGTH, "data.test=null"])
    return directory


@dataclass(frozen=True)
class ShortForms:
    """The programs behind the short forms, and the directories they work in."""

    interrupted: Background
    attacked: Background
    small_disk: Background | None
    directory: Path


@pytest.fixture(scope="session")
def short_forms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShortForms]:
    directory = tmp_path_factory.mktemp("background")
    for name in ("interrupted", "attacked", "disks"):
        (directory / name).mkdir()
    disks = (
        Background("small_disk", directory / "disks", before=OWN_MOUNTS) if may_mount() else None
    )
    interrupted = Background("interrupted", directory / "interrupted", NUM_KILLS, 2, 1)
    attacked = Background("attacked", directory / "attacked", BUNDLE, 4)
    yield ShortForms(interrupted, attacked, disks, directory)
    for background in (interrupted, attacked, disks):
        if background is not None:
            background.stop()


@pytest.fixture(name="run")
def _run(finished_run: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Callable[[str, str, str], None]:
    """record(name, what was done, result): a line of the table."""
    rows = request.config.stash.setdefault(FIGURES, [])
    return lambda name, what, result: rows.append(Row(name, what, result))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    rows = config.stash.get(FIGURES, [])
    if rows and config.getoption("markexpr") != "not prove":
        terminalreporter.section("survival")
        for line in print_table(rows):
            terminalreporter.write_line(line)
