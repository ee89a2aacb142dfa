"""LibreTranslate's own examples of requests, answered in its own form."""

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headwise.serving.app import create_app
from headwise.serving.loaded import LoadedModel

TEXT = {"q": "I am here.", "source": "en", "target": "de"}


def test_one_text_and_several(client: TestClient) -> None:
    one = client.post("/translate", json={**TEXT, "format": "text", "api_key": ""})
    assert one.status_code == 200
    assert set(one.json()) == {"translatedText"}
    several = client.post("/translate", json={**TEXT, "q": ["I am here.", "", "You are old."]})
    assert several.json()["translatedText"][:2] == [one.json()["translatedText"], ""]
    assert len(several.json()["translatedText"]) == 3


def test_alternatives_come_as_a_list_for_each_text(client: TestClient) -> None:
    one = client.post("/translate", json={**TEXT, "alternatives": 3}).json()
    assert isinstance(one["translatedText"], str)
    assert 1 <= len(one["alternatives"]) <= 3
    two = client.post("/translate", json={**TEXT, "q": ["I am.", "You are."], "alternatives": 2}).json()
    assert [len(found) <= 2 for found in two["alternatives"]] == [True, True]


def test_auto_takes_what_there_is_and_claims_nothing(client: TestClient) -> None:
    one = client.post("/translate", json={**TEXT, "source": "auto"}).json()
    assert one["detectedLanguage"] == {"confidence": 0.0, "language": "en"}
    two = client.post("/translate", json={**TEXT, "q": ["a", "b"], "source": "auto"}).json()
    assert len(two["detectedLanguage"]) == 2


def test_auto_tells_chinese_by_its_script(models: dict[str, LoadedModel], monkeypatch: pytest.MonkeyPatch) -> None:
    from headwise.serving.loaded import load_models
    from tests.serving.conftest import BUNDLE

    other = load_models([f"chinese={BUNDLE}"], device="cpu")
    translator = other["chinese"].value
    data = translator.recipe.data.model_copy(update={"source": "zh"})
    translator.recipe = translator.recipe.model_copy(update={"data": data})
    with TestClient(create_app({**models, **other}), base_url="http://localhost") as client:
        found = client.post("/translate", json={"q": "你好", "source": "auto", "target": "de"}).json()
        assert found["detectedLanguage"] == {"confidence": 90.0, "language": "zh"}
        languages = client.get("/languages").json()
    assert [(one["code"], one["targets"]) for one in languages] == [("en", ["de"]), ("de", []), ("zh", ["de"])]
    assert languages[0]["name"] == "English"


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"target": "xx"}, 400, "target language is not supported"),
        ({"source": "xx"}, 400, "source language is not supported"),
        ({"format": "html"}, 400, "html format is not supported"),
        ({"format": "xml"}, 400, "format must be"),
        ({"alternatives": "abc"}, 400, "alternatives must be a whole number"),
        ({"alternatives": 8}, 400, "at most 7"),
        ({"q": []}, 400, "at least 1"),
        ({"q": None}, 400, "q must be"),
    ],
)
def test_errors_are_one_sentence(client: TestClient, change: dict[str, Any], status: int, words: str) -> None:
    reply = client.post("/translate", json={**TEXT, **change})
    assert reply.status_code == status
    assert words in reply.json()["error"]


def test_a_missing_parameter_is_named_and_a_form_is_refused(client: TestClient) -> None:
    assert client.post("/translate", json={"source": "en", "target": "de"}).json() == {"error": "q is required"}
    form = client.post("/translate", data=TEXT)
    assert form.status_code == 415
    assert "application/json" in form.json()["error"]


def test_nothing_of_it_is_written_down(client: TestClient, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No input text in logs."""
    with caplog.at_level(0):
        client.post("/translate", json={**TEXT, "q": "Xylophonwort"})
        client.post("/v1/translate", json={"text": "Xylophonwort", "n_best": 99})
    assert "Xylophonwort" not in caplog.text
