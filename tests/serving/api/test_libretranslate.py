"""LibreTranslate's own examples of requests, answered in its own form."""

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headwise.serving.app import create_app
from headwise.serving.work.loaded_models import LoadedModel

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
    two = client.post(
        "/translate", json={**TEXT, "q": ["I am.", "You are."], "alternatives": 2}
    ).json()
    assert [len(found) <= 2 for found in two["alternatives"]] == [True, True]


def test_auto_takes_what_there_is_and_claims_what_it_measured(client: TestClient) -> None:
    one = client.post("/translate", json={**TEXT, "q": "The dog is old.", "source": "auto"}).json()
    assert one["detectedLanguage"]["language"] == "en"
    assert one["detectedLanguage"]["confidence"] > 90
    two = client.post("/translate", json={**TEXT, "q": ["12", "你好"], "source": "auto"}).json()
    assert two["detectedLanguage"] == [{"confidence": 0.0, "language": "en"}] * 2


def test_auto_tells_chinese_by_its_script(
    models: dict[str, LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    from headwise.serving.work.loaded_models import load_models
    from tests.serving.conftest import BUNDLE

    other = load_models([f"chinese={BUNDLE}"], device="cpu")
    translator = other["chinese"].value
    data = translator.recipe.data.model_copy(update={"source": "zh"})
    translator.recipe = translator.recipe.model_copy(update={"data": data})
    with TestClient(create_app({**models, **other}), base_url="http://localhost") as client:
        found = client.post(
            "/translate", json={"q": "你好", "source": "auto", "target": "de"}
        ).json()
        assert found["detectedLanguage"] == {"confidence": 100.0, "language": "zh-Hans"}
        languages = client.get("/languages").json()
        for code in ("zh", "zh-Hans", "zh-CN", "zh_hans"):
            reply = client.post("/translate", json={"q": "你好", "source": code, "target": "de"})
            assert reply.json()["translatedText"] == found["translatedText"], code
        traditional = client.post(
            "/translate", json={"q": "你好", "source": "zh-Hant", "target": "de"}
        )
    assert (traditional.status_code, list(traditional.json())) == (400, ["error"])
    assert [(one["code"], one["targets"]) for one in languages] == [
        ("en", ["de"]),
        ("de", []),
        ("zh-Hans", ["de"]),
    ]
    assert [one["name"] for one in languages] == ["English", "German", "Chinese"]


@pytest.mark.parametrize(
    ("text", "language", "least"),
    [
        ("Der Hund ist alt und müde.", "de", 90),
        ("The dog is old and tired.", "en", 90),
        ("我想喝茶。", "zh-Hans", 100),
        ("お茶をください。", "ja", 90),
        ("", "en", 0),
    ],
)
def test_the_language_of_a_text_is_named_even_if_no_model_reads_it(
    client: TestClient, text: str, language: str, least: float
) -> None:
    best = client.post("/detect", json={"q": text}).json()[0]
    assert best["language"] == language
    assert best["confidence"] >= least
    assert (best["confidence"] == 0.0) == (least == 0), "0 says that nothing was measured"


def test_a_form_says_what_json_says(client: TestClient) -> None:
    for body in (
        {**TEXT, "alternatives": 2},
        {**TEXT, "q": ["I am here.", "You are old."]},
        {**TEXT, "q": "über 你好"},
    ):
        by_form, by_json = (
            client.post("/translate", data=body),
            client.post("/translate", json=body),
        )
        assert (by_form.status_code, by_form.json()) == (200, by_json.json())
    assert (
        client.post("/detect", data={"q": "The dog"}).json()
        == client.post("/detect", json={"q": "The dog"}).json()
    )


@pytest.mark.parametrize("path", ["/translate", "/detect"])
def test_a_form_may_hold_utf8_as_it_is(client: TestClient, path: str) -> None:
    """`curl -d 'q=…'` sends the bytes that were typed."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    raw = client.post(path, content="q=über 你好&source=en&target=de".encode(), headers=form)
    assert (raw.status_code, raw.json()) == (
        200,
        client.post(path, json={**TEXT, "q": "über 你好"}).json(),
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"q=\xff&source=en&target=de", "the body is not a form"),
        (b"q=a&source=en", "target is required"),
        (b"q=a&source=en&target=de&alternatives=many", "alternatives must be a whole number"),
        (b"q=%ff&source=en&target=de", "the body is not a form"),
        (b"nonsense", "the body is not a form"),
        (b"&".join(b"q=a" for _ in range(300)), "the body is not a form"),
        (b"", "q is required"),
    ],
)
def test_a_form_that_does_not_fit_is_explained(
    client: TestClient, content: bytes, words: str
) -> None:
    reply = client.post(
        "/translate", content=content, headers={"Content-Type": "application/x-www-form-urlencoded"}
    )
    assert reply.status_code == 400
    assert words in reply.json()["error"]


@pytest.mark.parametrize(
    ("path", "words"), [("/translate_file", "translates no files"), ("/suggest", "no suggestions")]
)
def test_what_is_not_offered_is_said_whatever_is_sent(
    client: TestClient, path: str, words: str
) -> None:
    for reply in (
        client.post(path, files={"file": ("a.txt", b"x" * 100_000)}),
        client.post(path, json={"q": "a"}),
    ):
        assert reply.status_code == 404
        assert words in reply.json()["error"]


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
def test_errors_are_one_sentence(
    client: TestClient, change: dict[str, Any], status: int, words: str
) -> None:
    reply = client.post("/translate", json={**TEXT, **change})
    assert reply.status_code == status
    assert words in reply.json()["error"]


def test_a_missing_parameter_is_named_and_other_types_are_refused(client: TestClient) -> None:
    assert client.post("/translate", json={"source": "en", "target": "de"}).json() == {
        "error": "q is required"
    }
    several = client.post("/translate", data=TEXT, files={"file": b"x"})
    assert several.status_code == 415
    assert (
        "JSON or a form; send the header `Content-Type: application/json` or `Content-"
        in (several.json()["error"])
    )


def test_nothing_of_it_is_written_down(
    client: TestClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No input text in logs."""
    with caplog.at_level(0):
        client.post("/translate", json={**TEXT, "q": "Xylophonwort"})
        client.post("/v1/translate", json={"text": "Xylophonwort", "n_best": 99})
    assert "Xylophonwort" not in caplog.text
