"""Commands as a user gives them, run in this process; a finished tiny run; a folder of one's own to
stand in."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from headwise.cli.main import main
from headwise.language import use_language


@dataclass(frozen=True)
class Answer:
    """What a command said and how it ended."""

    status: int
    out: str
    err: str


Headwise = Callable[..., Answer]


@pytest.fixture(name="headwise")
def _headwise(capsys: pytest.CaptureFixture[str]) -> Headwise:
    def run(*words: object) -> Answer:
        use_language(None)
        capsys.readouterr()
        try:
            status = main([str(word) for word in words])
        except SystemExit as stop:
            status = int(stop.code or 0)
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return Answer(status, said.out, said.err)

    return run


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADWISE_DATA", str(tmp_path / "known"))
