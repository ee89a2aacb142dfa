"""The application: health, metrics, models, and its start."""

import time

import pytest
from fastapi.testclient import TestClient

from headwise.errors import HeadwiseError, UsageError
from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.uvicorn_server import serve
from headwise.serving.work.loaded_models import LoadedModel
from headwise.tasks.translation.translator import Translator
from tests.serving.event_loops import call_alone


def wait_until_ready(client: TestClient) -> None:
    until = time.monotonic() + 30
    while client.get("/readyz").status_code != 200:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_it_says_that_it_lives_and_when_it_is_ready(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "alive"}
    wait_until_ready(client)
    assert client.get("/readyz").json() == {"status": "ready"}


def test_models_are_listed_with_their_languages(client: TestClient) -> None:
    (listed,) = client.get("/v1/models").json()["models"]
    decodings = listed.pop("decodings")
    assert listed == {
        "name": "tiny",
        "kind": "translator",
        "source": "en",
        "target": "de",
        "architecture": "encoder_decoder",
        "output_form": "steps",
        "pocket_wordings": "one",
        "memory": None,
    }
    assert {"greedy", "beam", "sampling"} < {one["kind"] for one in decodings}


def test_a_translation_is_that_of_the_library(
    client: TestClient, models: dict[str, LoadedModel]
) -> None:
    texts = ["The dog is old.", "I am here."]
    reply = client.post(
        "/v1/translate", json={"text": texts, "decoding": {"kind": "beam", "size": 3}}
    )
    assert reply.status_code == 200, reply.text
    translator = models["tiny"].value
    expected = [one.text for one in translator(texts, translator.settings(["kind=beam", "size=3"]))]
    assert [one["text"] for one in reply.json()["translations"]] == expected


def test_white_space_comes_back_as_it_was(client: TestClient) -> None:
    reply = client.post("/v1/translate", json={"text": ["", "  \n\n "]})
    assert [one["text"] for one in reply.json()["translations"]] == ["", "  \n\n "]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("no memory left"), "RuntimeError: no memory left"),
        (UsageError("it does not fit", "不合适"), r"\(it does not fit\)"),
    ],
)
def test_a_model_that_cannot_translate_ends_the_server_with_a_sentence(
    models: dict[str, LoadedModel], monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(Translator, "__call__", fail)
    with pytest.raises(
        HeadwiseError,
        match=f"tiny could not translate a first sentence .*{said}.* the server stops",
    ):
        call_alone(lambda: serve(models, ServerSettings(port=0), announce=lambda line: None))


def test_a_server_that_is_broken_says_so(
    models: dict[str, LoadedModel],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Where somebody else runs the application."""
    monkeypatch.setattr("headwise.serving.app.WARM_UP_SECONDS", 0.05)
    monkeypatch.setattr(Translator, "__call__", lambda *_: time.sleep(0.5))
    with TestClient(create_app(models), base_url="http://127.0.0.1") as client:
        until = time.monotonic() + 30
        while (reply := client.get("/readyz")).json()["status"] == "starting":
            assert time.monotonic() < until
            time.sleep(0.01)
        assert reply.status_code == 503
        assert reply.json() == {"status": "broken"}
    assert "no answer in 0.05 seconds" in caplog.text
