from pathlib import Path

import pytest

from tests.storage.things import publish


@pytest.fixture(name="thing")
def _thing(tmp_path: Path) -> Path:
    """A published directory."""
    publish(tmp_path / "thing")
    return tmp_path / "thing"
