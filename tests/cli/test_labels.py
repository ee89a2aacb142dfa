"""`headwise classify` and `headwise tag` as a user gives them."""

import json
from pathlib import Path

import pytest

from headwise.tasks.run import train
from tests.cli.conftest import Headwise
from tests.tasks.labels.test_task import review_recipe, tag_recipe


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    train(review_recipe(folder), run=folder / "reviews")
    train(tag_recipe(folder, "training.steps=60"), run=folder / "tags")
    return folder


def test_one_label(headwise: Headwise, folder: Path) -> None:
    said = headwise("classify", "--model", folder / "reviews", "a good film", "a bad film")
    assert [line.split("\t")[0] for line in said.out.splitlines()] == ["yes", "no"]
    (folder / "texts.txt").write_text("very good\nvery bad\n", encoding="utf-8")
    said = headwise(
        "classify", "--model", folder / "reviews", "--file", folder / "texts.txt", "--json"
    )
    answers = [json.loads(line) for line in said.out.splitlines()]
    assert [answer["label"] for answer in answers] == ["yes", "no"]
    assert sum(answers[0]["probabilities"].values()) == pytest.approx(1, abs=1e-5)


def test_a_tag_for_each_word(headwise: Headwise, folder: Path) -> None:
    said = headwise("tag", "--model", folder / "tags", "I saw a saw")
    assert said.out == "I/P saw/V a/D saw/N\n"
    answer = json.loads(headwise("tag", "--model", folder / "tags", "I saw", "--json").out)
    assert answer["tags"] == ["P", "V"]
    assert headwise("tag", "--model", folder / "tags", "").out == "\n"


def test_a_text_that_is_cut_says_so(headwise: Headwise, folder: Path) -> None:
    """Rows have 16 tokens, one of them the beginning: 15 words are read whole, 41 are not."""
    for count, read in ((15, 15), (41, 15)):
        said = headwise(
            "classify", "--model", folder / "reviews", "good " * count, "good", "--json"
        )
        answers = [json.loads(line) for line in said.out.splitlines()]
        assert [(one["tokens"], one["tokens_read"]) for one in answers] == [(count, read), (1, 1)]
        told = (
            "1 text(s) are longer than this model reads (data.row_tokens): of the longest the "
            "first 15 of 41 tokens"
        )
        assert (told in said.err) == (count > read)
        (folder / "long.tsv").write_text(f"{'good ' * count}\tyes\nbad\tno\n", encoding="utf-8")
        said = headwise(
            "classify", "--model", folder / "reviews", "--measure", folder / "long.tsv", "--json"
        )
        assert (told in said.err) == (count > read) == (json.loads(said.out)["cut_texts"] == 1)


def test_an_argument_that_is_no_utf_8(headwise: Headwise, folder: Path) -> None:
    for command, model in (("classify", "reviews"), ("tag", "tags")):
        said = headwise(command, "--model", folder / model, "good \udcff")
        assert (said.status, said.out) == (2, "")
        assert "not UTF-8 at character 6" in said.err


def test_measuring(headwise: Headwise, folder: Path) -> None:
    said = headwise("classify", "--model", folder / "reviews", "--measure", folder / "reviews.tsv")
    assert "accuracy 100.00 % of 10" in said.out
    found = json.loads(
        headwise(
            "classify", "--model", folder / "reviews", "--measure", folder / "reviews.tsv", "--json"
        ).out
    )
    assert found["macro_f1"] == 1.0
    (folder / "slashed.txt").write_text("I/P saw/V a/D saw/N\n", encoding="utf-8")
    corpus = f"{{path: {folder}/slashed.txt, kind: slashed}}"
    assert (
        "accuracy 100.00 % of 4"
        in headwise("tag", "--model", folder / "tags", "--measure", corpus).out
    )
    for wrong in (folder / "slashed.txt", "{path: x.txt, kind: unheard}", "{path"):
        refused = headwise("tag", "--model", folder / "tags", "--measure", wrong)
        assert (refused.status, "Traceback" in refused.err) == (2, False)


def test_what_cannot_be_asked(headwise: Headwise, folder: Path) -> None:
    wrong = headwise("tag", "--model", folder / "reviews", "I saw")
    assert wrong.status == 2
    assert "use `headwise classify` with it" in wrong.err
    both = headwise("classify", "--model", folder / "reviews", "good", "--file", "x")
    assert both.status == 2
    assert "exclude each other" in both.err
    (folder / "bad.tsv").write_text("good\n", encoding="utf-8")
    bad = headwise("classify", "--model", folder / "reviews", "--measure", folder / "bad.tsv")
    assert bad.status == 3
    assert "bad.tsv:1" in bad.err
    assert headwise("doctor", folder / "reviews").status == 0
    (folder / "empty.txt").write_text("", encoding="utf-8")
    for command, model in (("classify", "reviews"), ("tag", "tags")):
        refused = headwise(command, "--model", folder / model, "--file", folder / "empty.txt")
        assert (refused.status, "empty.txt: holds no sentence" in refused.err) == (3, True)
