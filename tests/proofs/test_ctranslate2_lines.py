"""A thousand lines through the code of an exported README, many of which run away: our text, every
time."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headwise.exporting.ctranslate2_export import export_translator
from headwise.pocket import sentences
from headwise.tasks.translation.bundle import load_translator_bundle
from headwise.tasks.translation.translator import Translator
from tests.exporting.test_ctranslate2_export import read_code
from tests.tasks.tiny import train_tiny

LIMIT = "max_length={factor: 2.0, extra: 20, limit: 512}"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Learned a little: it ends some sentences of its language, and those of other languages
    seldom."""
    directory = tmp_path_factory.mktemp("lines") / "run"
    train_tiny(
        directory,
        (
            "data.train={kind: pocket, split: train, count: 3000}",
            "text={kind: sentencepiece, size: 600, byte_fallback: true, coverage: 1.0}",
            "model.dim=32",
            "training.steps=200",
            "training.batch_tokens=1024",
        ),
    )
    return directory


def read_lines() -> list[str]:
    """Six hundred of the model's language, two hundred of each of the others."""
    test = list(sentences("test", 600))
    return [one.text("en") for one in test] + [
        one.text(other) for other in ("de", "zh") for one in test[:200]
    ]


@pytest.mark.prove
@pytest.mark.parametrize(
    ("search", "num_long"),
    [(["kind=greedy"], 50), (["kind=beam", "size=4", "stop=filled"], 0)],
    ids=["greedy", "beam"],
)
def test_a_thousand_lines(
    run: Path, search: list[str], num_long: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Greedy search of a model of one epoch runs on to the limit for many lines; a beam that fills
    its places seldom does."""
    translator = Translator.load(run, precision="fp32")
    decoding = translator.settings([*search, LIMIT])
    recipe = translator.recipe.model_copy(update={"decoding": decoding})
    export_translator(replace(load_translator_bundle(run), recipe=recipe), tmp_path / "there")
    lines = read_lines()
    here = translator(lines, decoding)
    monkeypatch.chdir(tmp_path / "there")
    names: dict[str, Any] = {}
    exec(read_code(tmp_path / "there"), names)
    same = [one.text == text for one, text in zip(here, names["translate"](lines), strict=True)]
    limits = [names["longest"](translator.encode(line)) for line in lines]
    lengths = [len(translator.tokenizers.target.encode(one.text)) for one in here]
    run_on = sum(length >= limit - 2 for length, limit in zip(lengths, limits, strict=True))
    assert run_on >= num_long, "the limit is hardly ever reached"
    assert sum(same) == len(lines) == 1000
