"""`headwise serve`: what its help says of itself, and how its process ends."""

import os
import signal
from pathlib import Path
from typing import Any, NoReturn

import pytest

from headwise.errors import StoppedBySignal
from headwise.serving import uvicorn_server
from headwise.serving.app import create_app
from tests.cli.conftest import Headwise

ONLY_EXPLORE = {"/v1/demo"}


@pytest.mark.parametrize("language", ["en_GB.UTF-8", "zh_CN.UTF-8"])
def test_help_names_every_address(
    headwise: Headwise, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", language)
    told = headwise("serve", "--help").out
    assert ("地址" in told) == language.startswith("zh")
    assert {path for path in create_app({}).openapi()["paths"] if path not in told} == ONLY_EXPLORE


def test_a_stopped_server_does_not_wait_for_python_to_end(
    headwise: Headwise, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taking apart the model and torch took longer than the last replies."""

    class EndedError(Exception):
        pass

    def stop(*given: Any, **settings: Any) -> NoReturn:
        raise StoppedBySignal(signal.SIGTERM)

    def end(status: int) -> NoReturn:
        raise EndedError(status)

    monkeypatch.setattr(uvicorn_server, "serve", stop)
    monkeypatch.setattr(os, "_exit", end)
    with pytest.raises(EndedError, match="143"):
        headwise("serve", tiny_run, "--port", "0", "--device", "cpu")
