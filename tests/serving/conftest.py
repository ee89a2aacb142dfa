"""A server in this process with a bundle of the repository, and clients that need no network."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from headwise.serving.app import create_app
from headwise.serving.http import connection_limit
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import LoadedModel, load_models
from tests.serving.running_server import RunningServer

BUNDLE = Path(__file__).resolve().parents[1] / "fixtures" / "format-1" / "bundle"


@pytest.fixture(scope="session")
def models() -> dict[str, LoadedModel]:
    return load_models([f"tiny={BUNDLE}"], device="cpu", precision="fp32")


@pytest.fixture(scope="module")
def client(models: dict[str, LoadedModel]) -> Iterator[TestClient]:
    with TestClient(create_app(models, ServerSettings()), base_url="http://127.0.0.1") as found:
        yield found


@pytest.fixture
def running(
    models: dict[str, LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> Iterator[RunningServer]:
    monkeypatch.setattr(connection_limit, "MIN_WAIT_SECONDS", 0.0)
    found = RunningServer(models)
    try:
        yield found
    finally:
        found.stop()
