"""Slips of people who use the library from Python: each gets a sentence, not a traceback from deep
inside."""

from pathlib import Path
from typing import Any

import pytest

import headwise
from headwise.errors import UsageError
from headwise.tasks.arguments import require_text, require_texts
from tests.tasks.tiny import tiny_recipe


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((5,), {"run": "r"}, "recipe is a int; give a path, e.g. 'pocket'"),
        (({"task": "translation"},), {"run": "r"}, "recipe is a dict"),
        (("pocket",), {"run": None}, "run is a NoneType; give a path, e.g. 'runs/mine'"),
        (("pocket",), {"run": "a\0b"}, "run is 'a.x00b'"),
        (
            ("pocket",),
            {"run": "r", "overrides": "training.steps=3"},
            "overrides is 'training.steps=3'; give a list of",
        ),
        (("pocket",), {"run": "r", "overrides": [3]}, r"overrides is \[3\]; give a list of texts"),
        (
            ("pocket",),
            {"run": "r", "overrides": {"training.steps": 3}},
            "overrides is {'training.steps': 3}",
        ),
    ],
)
def test_train(
    arguments: tuple[Any],
    options: dict[str, Any],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message):
        headwise.train(*arguments, **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", [None, 7, b"runs", ["runs"]])
def test_load(given: Any) -> None:
    with pytest.raises(
        UsageError, match=r"directory is a \w+; give a path, e.g. 'runs/demo/model'"
    ):
        headwise.Translator.load(given)
    with pytest.raises(UsageError, match=r"recipe is a \w+; give a path, e.g. 'pocket'"):
        headwise.load_recipe(given)


def test_a_device_that_does_not_exist(tiny_run: Path) -> None:
    with pytest.raises(UsageError, match="there is no device 'gpu'; choose one of auto, cpu, cuda"):
        headwise.Translator.load(tiny_run, device="gpu")  # type: ignore[arg-type]


def test_overrides_of_a_recipe_value_are_heard(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"training.stepz: unknown key"):
        headwise.train(tiny_recipe(), run=tmp_path / "run", overrides=["training.stepz=3"])


def test_bytes_that_are_no_utf_8() -> None:
    """As the system hands them over in an argument: lone surrogates."""
    with pytest.raises(
        UsageError,
        match=r"texts holds something that is not UTF-8 at character 2: 'a.udcff'; give text in "
        r"UTF-8",
    ):
        require_texts(["fine", "词", "a\udcff"], "texts")
    with pytest.raises(UsageError, match="beginning is a bytes; give a text"):
        require_text(b"a", "beginning")
    assert require_text("词性 naïve 😀", "beginning") == "词性 naïve 😀"
