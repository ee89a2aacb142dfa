"""A way to generate that is no search: all tokens at once, no stepper. Everything takes it as it
is.

The fake below is what a non-autoregressive decoder costs: one file with a `Generator`, and its line
in `choices.py` (here: patched in). Translator, server, evaluation and the page's trace are not
touched.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from fastapi.testclient import TestClient
from torch import Tensor

from headwise.cli.main import main
from headwise.decoding import choices
from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.generator import NO_WATCHER, Generator, Watcher
from headwise.decoding.results import (
    EMPTY_RESULT,
    Hypothesis,
    SearchResult,
    SearchTrace,
    TracedToken,
)
from headwise.decoding.rules.constraints import SentenceRules
from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import load_models
from headwise.text.tokenizer import EOS, NUM_SPECIAL
from tests.serving.conftest import BUNDLE

TEXT = "The old dog saw the child."


class OnePassGenerator(Generator):
    """Maps every source token to the token of the same number, all positions at once."""

    def __init__(self, model: Any) -> None:
        self.vocab = model.model.output.weight.shape[0]

    def predict(self, source: Sequence[int], length: int) -> Tensor:
        """Log-probabilities of all positions, [length, vocab]; after the source comes the end."""
        expected = [*source, *[EOS] * (length - len(source))][:length]
        tokens = torch.tensor([token % self.vocab for token in expected])
        logits = torch.full((length, self.vocab), -9.0)
        logits[torch.arange(length), tokens] = 0.0
        return logits.log_softmax(-1)

    def generate(
        self,
        sources: Sequence[Sequence[int]],
        settings: GenerationSettings,
        rules: SentenceRules | Sequence[SentenceRules] | None = None,
        *,
        numbers: Sequence[int] | None = None,
        traced: bool = False,
        watcher: Watcher = NO_WATCHER,
    ) -> list[SearchResult]:
        each = [rules or SentenceRules()] * len(sources) if not isinstance(rules, list) else rules
        if watcher.before_step is not None:
            watcher.before_step()
        return [
            self.write(source, one.prefix, traced=traced)
            for source, one in zip(sources, each, strict=True)
        ]

    def write(
        self, source: Sequence[int], prefix: tuple[int, ...], *, traced: bool
    ) -> SearchResult:
        if not source:
            return EMPTY_RESULT
        scores = self.predict(source, len(source) + 1)
        tokens = [*prefix, *scores.argmax(-1).tolist()[len(prefix) :]][: len(source)] + [EOS]
        values = [float(row[token]) for row, token in zip(scores, tokens, strict=True)]
        total = sum(values)
        best = Hypothesis(tuple(tokens[:-1]), total, total / len(values), tuple(values), True)
        return SearchResult((best,), trace_of(tokens, values) if traced else None)

    def read(
        self,
        sources: Sequence[Sequence[int]],
        target: Sequence[int],
        *,
        before_step: Callable[[], None] | None = None,
    ) -> Iterator[Tensor]:
        tables = torch.stack([self.predict(source, len(target) + 1) for source in sources])
        return iter(tables.unbind(1))


def trace_of(tokens: Sequence[int], values: Sequence[float]) -> SearchTrace:
    """One slot, which every token continues; the last one finishes."""
    steps, total = [], 0.0
    for token, value in zip(tokens, values, strict=True):
        total += value
        is_end = token == EOS
        fate: Literal["finished", "kept"] = "finished" if is_end else "kept"
        slot = None if is_end else 0
        steps.append((TracedToken(0, token, value, total, total, fate, slot),))
    return SearchTrace(tuple(steps))


@pytest.fixture(autouse=True)
def _one_line_in_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "StepperSearch", OnePassGenerator)


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
