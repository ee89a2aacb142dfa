"""`headwise explore`: which models it opens, where, and what it does without any."""

import shutil
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from headwise.cli import explore
from headwise.serving import uvicorn_server
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import LoadedModel
from tests.cli.conftest import Headwise
from tests.explorer.conftest import BUNDLE


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], ServerSettings]]:
    """What would have been served."""
    calls: list[tuple[list[str], ServerSettings]] = []

    def serve(
        models: Mapping[str, LoadedModel],
        settings: ServerSettings,
        *,
        announce: Callable[[str], None],
        opened: Callable[[str], None],
    ) -> None:
        calls.append((list(models), settings))
        opened("http://127.0.0.1:1/")

    monkeypatch.setattr(uvicorn_server, "serve", serve)
    return calls


def test_without_a_model_it_offers_to_train_the_demo(headwise: Headwise, served: list[Any]) -> None:
    answer = headwise("explore", "--port", 0)
    assert answer.status == 0
    assert "the explorer is at http://127.0.0.1:1/" in answer.err
    models, settings = served[0]
    assert (models, settings.demo, settings.runs) == ([], Path("runs/demo"), Path("runs"))
    assert not Path("runs").exists()


def test_the_demo_is_found_and_runs_are_shown(headwise: Headwise, served: list[Any]) -> None:
    shutil.copytree(BUNDLE, "runs/demo/model")
    assert headwise("explore", "--port", 0, "--no-browser").status == 0
    models, settings = served[0]
    assert (models, settings.demo, settings.runs) == (["demo"], Path("runs/demo"), Path("runs"))


def test_pairs_that_the_page_trained_are_found_too(headwise: Headwise, served: list[Any]) -> None:
    shutil.copytree(BUNDLE, "runs/demo-zh-en/model")
    Path("runs/demo-en-zh").mkdir()  # begun, not finished
    assert headwise("explore", "--port", 0, "--no-browser").status == 0
    shutil.copytree(BUNDLE, "runs/demo/model")
    assert headwise("explore", "--port", 0, "--no-browser").status == 0
    assert [models for models, _ in served] == [["demo-zh-en"], ["demo", "demo-zh-en"]]


def test_given_models_are_opened_and_nothing_is_trained(
    headwise: Headwise, served: list[Any]
) -> None:
    assert headwise("explore", f"one={BUNDLE}", f"other={BUNDLE}", "--port", 0).status == 0
    models, settings = served[0]
    assert (models, settings.demo) == (["one", "other"], None)


def test_a_usual_port_that_is_taken_makes_way(
    headwise: Headwise, served: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(explore, "USUAL_PORT", port)
        assert headwise("explore", "--port", port).status == 0
        assert served[0][1].port == 0


def test_others_need_a_key(headwise: Headwise, served: list[Any]) -> None:
    answer = headwise("explore", "--host", "0.0.0.0")
    assert answer.status == 2
    assert "can be reached by others, and no keys were given" in answer.err
    assert served == []
