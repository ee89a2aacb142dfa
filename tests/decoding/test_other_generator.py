"""A generator without a stepper can serve the existing kinds, if `make_generator` chooses it.

The fake of `token_mapping.py` takes the place of `StepperSearch`. Translator, server, evaluation
and the page's trace are not touched. `test_new_kind.py` adds the same as a kind of its own.
"""

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from headwise.cli.main import main
from headwise.decoding import choices
from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import load_models
from headwise.text.tokenizer import NUM_SPECIAL
from tests.decoding.token_mapping import TokenMapping
from tests.serving.conftest import BUNDLE

TEXT = "The old dog saw the child."


@pytest.fixture(autouse=True)
def _one_line_in_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "StepperSearch", TokenMapping)


@pytest.fixture
def expected() -> str:
    """What the fake writes for the text, worked out without it."""
    translator = load_models([f"tiny={BUNDLE}"], device="cpu", precision="fp32")["tiny"].value
    source = translator.tokenizers.source.encode(TEXT)
    assert min(source) >= NUM_SPECIAL
    return translator.tokenizers.target.decode(source)


def test_translate(expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", "--model", str(BUNDLE), "--json", "--text", TEXT, "--text", ""]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["text"] == expected
    assert first["alignment"]
    assert second["text"] == ""


def test_evaluate(expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, reference = tmp_path / "source.en", tmp_path / "reference.de"
    source.write_text(f"{TEXT}\n" * 3, encoding="utf-8")
    reference.write_text(f"{expected}\n" * 3, encoding="utf-8")
    command = ["evaluate", "--model", str(BUNDLE), "--source", str(source)]
    assert main([*command, "--reference", str(reference), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["bleu"] == pytest.approx(100.0)


def test_serve_and_the_page(expected: str) -> None:
    models = load_models([f"tiny={BUNDLE}"], device="cpu", precision="fp32")
    with TestClient(create_app(models, ServerSettings()), base_url="http://127.0.0.1") as client:
        reply = client.post("/v1/translate", json={"text": TEXT}).json()
        assert reply["translations"][0]["text"] == expected
        stream = client.post("/v1/translate", json={"text": TEXT, "stream": True})
        assert json.dumps(expected, ensure_ascii=False) in stream.text
        body = {"text": TEXT, "top": 3, "tree": True, "maps": {"kinds": ["cross"]}}
        trace = client.post("/v1/trace", json=body).json()
        assert trace["target_text"] == expected
        assert len(trace["steps"]) == len(trace["n_best"][0]["tokens"]) + 1
        assert [step["rank"] for step in trace["steps"]] == [1] * len(trace["steps"])
        assert trace["tree"]["nodes"][trace["tree"]["leaves"][0] - 1]["fate"] == "finished"
        assert trace["maps"]
        occluded = client.post("/v1/occlude", json={"text": TEXT}).json()
        assert len(occluded["changes"]) == len(occluded["words"])
