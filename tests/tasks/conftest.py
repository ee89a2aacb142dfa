from pathlib import Path

import pytest

from headwise.tasks.translator import Translator
from tests.tasks.tiny import train_tiny


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; not to be changed."""
    directory = tmp_path_factory.mktemp("runs") / "tiny"
    train_tiny(directory)
    return directory


@pytest.fixture(scope="session")
def translator(tiny_run: Path) -> Translator:
    return Translator.load(tiny_run)
