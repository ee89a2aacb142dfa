"""The directory in which the documentation's code runs: a small corpus, a recipe, and a model
trained for a moment."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwise
from headwise.pocket import sentences
from tests.plugins.regression import installed

RECIPE = """
task: translation
data: {source: en, target: de, train: my/train, valid: my/valid, test: my/test, row_tokens: 64}
text: {kind: sentencepiece, size: 600}
model:
  dim: 16
  encoder: {layers: 2, heads: 2}
  decoder: {layers: 2, heads: 2}
  feed_forward: {kind: relu, hidden: 32}
training:
  steps: 6
  batch_tokens: 256
  checkpoint_every: 3
  validate_every: 3
  device: cpu
  compile: "off"
  precision: fp32
decoding: {kind: beam, size: 2, max_length: 24}
"""


@pytest.fixture(scope="package", autouse=True)
def example_package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The page on words of other packages uses those of examples/plugin."""
    with installed(tmp_path_factory.mktemp("packages")):
        yield


@pytest.fixture(scope="session")
def _template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("docs")
    (directory / "my").mkdir()
    for part, count in (("train", 200), ("valid", 7), ("test", 7)):
        chosen = list(sentences(part, count))
        for language in ("en", "de"):
            lines = "".join(f"{one.text(language)}\n" for one in chosen)
            (directory / "my" / f"{part}.{language}").write_text(lines, encoding="utf-8")
    (directory / "my.yaml").write_text(RECIPE, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        headwise.train("my.yaml", run="runs/demo")
        headwise.train(
            "word-vectors",
            run="runs/words",
            overrides=["data.train=my/train.en", "training.epochs=1"],
        )
        shutil.copytree("runs/words", "runs/words-zh")
    for copy, original in (
        ("my/new.en", "my/test.en"),
        ("translations-1.de", "my/test.de"),
        ("translations-2.de", "my/test.de"),
    ):
        shutil.copy(directory / original, directory / copy)
    return directory


@pytest.fixture
def workspace(_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh copy, with the working directory in it."""
    directory = tmp_path / "workspace"
    shutil.copytree(_template, directory)
    monkeypatch.chdir(directory)
    return directory
