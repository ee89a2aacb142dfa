"""A random Marian model, its bundle, and the sentences both translate."""

from pathlib import Path

import pytest

from headwise.importing.marian_import import import_marian
from headwise.pocket import sentences
from headwise.tasks.translation.translator import Translator
from tests.importing.marian import Peer, load_peer, write_marian


@pytest.fixture(scope="session", name="marian")
def _marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_marian(tmp_path_factory.mktemp("marian") / "model")


@pytest.fixture(scope="session", name="imported")
def _imported(marian: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("imported") / "bundle"
    import_marian(marian, output)
    return output


@pytest.fixture(scope="session", name="peer")
def _peer(marian: Path) -> Peer:
    return load_peer(marian)


@pytest.fixture(name="translator", scope="session")
def _translator(imported: Path) -> Translator:
    return Translator.load(imported)


@pytest.fixture(scope="session", name="texts")
def _texts() -> list[str]:
    return [one.text("zh") for one in sentences("test", 200)]
