"""`headwise import` and `headwise adapt` as they are typed: output, exit status, nothing left."""

import json
from pathlib import Path

import pytest

from headwise.pocket import sentences
from tests.cli.conftest import Headwise

pytest.importorskip("transformers")


@pytest.fixture(name="texts")
def _texts() -> None:
    for code in ("en", "de"):
        lines = "".join(one.text(code) + "\n" for one in list(sentences("train", 200)))
        Path(f"my.{code}").write_text(lines, encoding="utf-8")


def test_a_model_is_imported_and_translates(headwise: Headwise) -> None:
    from tests.importing.marian import write_marian

    write_marian(Path("opus"))
    answer = headwise("import", "opus", "bundle", "--json")
    assert answer.status == 0, answer.err
    told = json.loads(answer.out)
    assert (told["model"], told["source"], told["target"]) == ("bundle", "zh", "en")
    assert headwise("translate", "--model", "bundle", "--text", "它太累了。").status == 0
    assert "begin each source with a code" in headwise("import", "opus", "second").out
    again = headwise("import", "opus", "bundle")
    assert (again.status, "exists already" in again.err) == (2, True)


@pytest.mark.parametrize(
    ("name", "status", "message"),
    [
        ("nowhere", 2, "is not a directory"),
        (".", 3, "is no Marian model in the format of transformers"),
    ],
)
def test_what_is_no_model(name: str, status: int, message: str, headwise: Headwise) -> None:
    answer = headwise("import", name, "bundle")
    assert (answer.status, message in answer.err) == (status, True), answer.err
    assert not Path("bundle").exists()


@pytest.mark.usefixtures("texts")
def test_a_translator_is_adapted(tiny_run: Path, headwise: Headwise) -> None:
    words = ["adapt", str(tiny_run), "--data", "my", "--run", "mine", "training.steps=4"]
    answer = headwise(*words, "training.schedule.warmup=1")
    assert answer.status == 0, answer.err
    assert "BLEU before" in answer.out
    assert Path("mine/adaptation.json").is_file()
    assert headwise("translate", "--model", "mine", "--text", "The dog is old.").status == 0


@pytest.mark.usefixtures("texts")
@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("--own-share", "2"), 2, "above 0 and at most 1"),
        (("--valid", "my"), 2, "--valid and --test go together"),
        (("--general", "none"), 3, "none"),
        (("model.dim=8",), 3, "another model"),
    ],
)
def test_an_adaptation_that_cannot_be(
    words: tuple[str, ...], status: int, message: str, tiny_run: Path, headwise: Headwise
) -> None:
    answer = headwise("adapt", str(tiny_run), "--data", "my", "--run", "mine", *words)
    assert (answer.status, message in answer.err) == (status, True), answer.err
    assert not Path("mine").exists()
