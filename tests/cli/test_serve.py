"""`headwise serve`: what its help says of itself, and how its process ends."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest

from headwise.errors import StoppedBySignal
from headwise.pocket import sentences
from headwise.serving import uvicorn_server
from headwise.serving.app import create_app
from headwise.serving.work.loaded_models import LoadedModel
from tests.cli.conftest import Headwise
from tests.explorer.conftest import BUNDLE

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


@pytest.fixture(name="store")
def _store(tiny_run: Path, headwise: Headwise) -> Path:
    for language in ("en", "de"):
        lines = [one.text(language) for one in sentences("train", 5)]  # type: ignore[arg-type]
        Path(f"my.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert headwise("memory", "build", tiny_run, "--output", "store", "my").status == 0
    return Path("store")


@pytest.mark.parametrize("command", ["serve", "explore"])
def test_a_store_takes_part_or_is_refused_before_the_server_listens(
    command: str,
    headwise: Headwise,
    tiny_run: Path,
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    served: list[Mapping[str, LoadedModel]] = []
    monkeypatch.setattr(uvicorn_server, "serve", lambda models, *_, **__: served.append(models))
    options = ["--memory", store, "--port", "0", "--device", "cpu"]
    assert headwise(command, f"mine={tiny_run}", f"tiny={BUNDLE}", *options).status == 0
    memories = {name: one.memory is not None for name, one in served.pop().items()}
    assert memories == {"mine": True, "tiny": False}
    answer = headwise(command, BUNDLE, *options)
    assert (answer.status, "is the memory of another model" in answer.err) == (2, True)
    answer = headwise(command, tiny_run, "--memory", "nothing", "--port", "0")
    assert (answer.status, "is not a store of neighbours" in answer.err) == (3, True)
    victim = sorted(store.glob("*.keys"))[0]
    victim.write_bytes(victim.read_bytes()[:-1] + b"x")
    answer = headwise(command, tiny_run, *options)
    assert (answer.status, "damaged" in answer.err) == (3, True)
    assert served == []
