"""score, predict, arpa and train, as a user gives them."""

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from headwise.cli import score
from headwise.settings import read_yaml
from tests.cli.conftest import Headwise

TEXT = "the dog sleeps\nthe cat sleeps\na cat eats the fish\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from headwise.tasks.recipe import recipe_from
    from headwise.tasks.run import train

    folder = tmp_path_factory.mktemp("language")
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    data = {"language": "en", "train": str(folder / "text.txt"), "test": str(folder / "text.txt")}
    train(
        recipe_from({"task": "language_modeling", "data": data, "model": {"order": 2}}),
        run=folder / "run",
    )
    return folder / "run"


def test_training_by_a_recipe_file(headwise: Headwise, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        f"task: language_modeling\ndata: {{language: en, train: {tmp_path}/text.txt, test: "
        f"{tmp_path}/text.txt}}\n"
    )
    assert headwise("train", recipe, "--check").status == 0
    said = headwise("train", recipe, "--run", tmp_path / "run", "model.order=2")
    assert said.status == 0
    assert "test set, perplexity" in said.out
    assert "headwise predict --model" in said.out
    assert headwise("train", recipe, "--run", tmp_path / "run").status == 2
    refused = headwise("train", recipe, "--run", tmp_path / "other", "model.order=0")
    assert (refused.status, (tmp_path / "other").exists()) == (2, False)
    assert "model.order: must be at least 1" in refused.err
    assert headwise("translate", "--model", tmp_path / "run").status == 3
    assert headwise("doctor", tmp_path / "run").status == 0


def test_sentences_are_compared(headwise: Headwise, run: Path) -> None:
    said = headwise("score", "--model", run, "the dog sleeps", "sleeps dog zebra")
    assert said.status == 0
    assert "more natural: the dog sleeps (" in said.out
    assert "1 unknown (⁇): the model gives them the probability of <unk>" in said.out
    found = json.loads(
        headwise("score", "--model", run, "the dog sleeps", "sleeps dog", "--json").out
    )
    assert found["best"] == 0
    assert [token["token"] for token in found["sentences"][1]["tokens"]] == [
        "▁sleeps",
        "▁dog",
        "</s>",
    ]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1.2345, "1.23"),
        (999.9, "1,000"),
        (1249.9, "1,250"),
        (2_345_678, "2,350,000"),
        (3e12, "3e+12"),
    ],
)
def test_how_many_times_is_written_out(value: float, written: str) -> None:
    assert score._rounded(value) == written


def test_files_and_standard_input(
    headwise: Headwise, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lines.txt").write_text("\nthe dog sleeps\n\na cat\n", encoding="utf-8")
    lines = headwise("score", "--model", run, "--file", tmp_path / "lines.txt").out.splitlines()
    assert [line.split("\t")[3] for line in lines] == ["", "the dog sleeps", "", "a cat"]
    assert lines[0] == lines[2]
    assert (
        len(
            headwise(
                "score", "--model", run, "--file", tmp_path / "lines.txt", "--json"
            ).out.splitlines()
        )
        == 4
    )
    summary = json.loads(
        headwise(
            "score", "--model", run, "--file", tmp_path / "lines.txt", "--summary", "--json"
        ).out
    )
    assert summary["predictions"] == 7
    assert (
        "over 4 predictions" in headwise("score", "--model", run, "the dog sleeps", "--summary").out
    )
    assert headwise("score", "--model", run, "x" * (1 << 17), "--summary").status == 2
    monkeypatch.setattr(
        "sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"the cat ____\n"), isatty=lambda: False)
    )
    assert (
        json.loads(headwise("predict", "--model", run, "--json").out)["predictions"][0]["text"]
        == "sleeps"
    )
    monkeypatch.setattr(
        "sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"a cat\n"), isatty=lambda: False)
    )
    assert json.loads(headwise("score", "--model", run, "--json").out)["text"] == "a cat"
    for words in (["score"], ["score", "--file", "-"], ["predict"]):
        bad = SimpleNamespace(buffer=io.BytesIO(b"the cat\nthe\nb\xffd\n"), isatty=lambda: False)
        monkeypatch.setattr("sys.stdin", bad)
        answer = headwise(*words, "--model", run)
        assert (answer.status, answer.out) == (3, "")
        assert "standard input:3: byte 13 (0xff) is not UTF-8" in answer.err
    (tmp_path / "long.txt").write_text("x" * (1 << 20), encoding="utf-8")
    assert headwise("score", "--model", run, "--file", tmp_path / "long.txt").status == 3


def test_unknown_words_get_no_verdict_and_the_reason(headwise: Headwise, run: Path) -> None:
    strangers = ("score", "--model", str(run), "qwer asdf yxcv", "tzui ghjk")
    said = headwise(*strangers).out
    assert "more natural" not in said
    assert (
        "no verdict: most words of qwer asdf yxcv and of tzui ghjk are unknown to this model"
        in said
    )
    found = json.loads(headwise(*strangers, "--json").out)
    assert (found["best"], found["no_best_because"]) == (None, "unknown_words")


def test_equally_natural_sentences_have_no_winner(headwise: Headwise, run: Path) -> None:
    same = ("score", "--model", run, "the dog sleeps", "the cat", "the dog sleeps")
    assert headwise(*same).out.endswith("equally natural: the dog sleeps and the dog sleeps\n")
    assert json.loads(headwise(*same, "--json").out)["best"] is None


@pytest.mark.parametrize("text", ["", "\n  \n"])
def test_a_text_without_sentences_is_refused(
    headwise: Headwise, run: Path, tmp_path: Path, text: str
) -> None:
    (tmp_path / "nothing.txt").write_text(text, encoding="utf-8")
    for options in ((), ("--summary",), ("--json",)):
        refused = headwise("score", "--model", run, "--file", tmp_path / "nothing.txt", *options)
        assert (refused.status, refused.out) == (3, "")
        assert (
            "nothing.txt: holds no sentence; at least one line with words is needed" in refused.err
        )


def test_beginnings_from_a_file(headwise: Headwise, run: Path, tmp_path: Path) -> None:
    (tmp_path / "beginnings.txt").write_text("the cat ____\n\n", encoding="utf-8")
    lines = headwise(
        "predict", "--model", run, "--file", tmp_path / "beginnings.txt", "--json"
    ).out.splitlines()
    assert [json.loads(line)["beginning"] for line in lines] == ["the cat ____", ""]
    assert (
        headwise("predict", "--model", run, "--file", tmp_path / "beginnings.txt", "the").status
        == 2
    )
    (tmp_path / "beginnings.txt").write_text("", encoding="utf-8")
    assert headwise("predict", "--model", run, "--file", tmp_path / "beginnings.txt").status == 3
    (whole,) = json.loads(
        headwise("predict", "--model", run, "the cat", "--length", 3, "--top", 1, "--json").out
    )["predictions"]
    assert (whole["text"], whole["tokens"]) == ("sleeps </s>", ["▁sleeps", "</s>"])


def test_next_words(headwise: Headwise, run: Path) -> None:
    said = headwise("predict", "--model", run, "the ____", "--top", 3)
    assert len(said.out.splitlines()) == 5
    assert headwise("predict", "--model", run, "the ____ sleeps").status == 2


def test_pairs(headwise: Headwise, run: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("sleeps dog the\tthe dog sleeps\n", encoding="utf-8")
    assert (
        "in 1 of 1 pairs: 100.0 %"
        in headwise("score", "--model", run, "--pairs", tmp_path / "pairs.tsv").out
    )
    assert (
        json.loads(
            headwise("score", "--model", run, "--pairs", tmp_path / "pairs.tsv", "--json").out
        )["accuracy"]
        == 1
    )
    assert headwise("score", "--model", run, "--pairs", tmp_path / "pairs.tsv", "a").status == 2
    (tmp_path / "unknown.tsv").write_text("zebra yaks\tyaks zebra it\n", encoding="utf-8")
    told = headwise("score", "--model", run, "--pairs", tmp_path / "unknown.tsv")
    assert (told.status, "%" in told.out) == (0, False)
    assert told.out.startswith(
        "no verdict on 1 pair: most words of a sentence are unknown to this model; it gives every"
    )


def test_arpa(headwise: Headwise, run: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.arpa"
    assert headwise("arpa", run, path).out == f"{path}\n"
    first = path.read_text(encoding="utf-8")
    path.unlink()
    assert headwise("export", run, path).out == f"{path}\n"
    assert path.read_text(encoding="utf-8") == first
    assert json.loads(headwise("export", run, tmp_path / "again.arpa", "--json").out) == {
        "file": str(tmp_path / "again.arpa")
    }
    assert headwise("score", "--model", path, "the dog sleeps").status == 0
    assert headwise("arpa", run, path).status == 2
    path.write_text(
        path.read_text(encoding="utf-8").replace("ngram 2=", "ngram 2=9"), encoding="utf-8"
    )
    refused = headwise("score", "--model", path, "the dog sleeps")
    assert refused.status == 3
    assert "2-grams are announced" in refused.err


def test_the_schema_of_a_language_model(headwise: Headwise) -> None:
    schema = json.loads(headwise("schema", "language_modeling").out)
    sections = {"task", "data", "text", "tokenizer", "reading", "model", "training"}
    assert schema["properties"].keys() == sections
    assert read_yaml(headwise("recipes", "ptb-ngram").out)["task"] == "language_modeling"


def test_writing_on(headwise: Headwise, run: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT * 5, encoding="utf-8")
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        f"task: language_modeling\ndata: {{language: en, train: {tmp_path}/text.txt}}\n"
        "model: {kind: recurrent, dim: 5, hidden: 7}\n"
        "training: {batch_tokens: 64, steps: 3, device: cpu, precision: fp32}\n"
    )
    assert headwise("train", recipe, "--run", tmp_path / "run").status == 0
    said = headwise(
        "generate", "--model", tmp_path / "run", "the dog", "--samples", 2, "--length", 5, "--json"
    )
    written = [json.loads(line) for line in said.out.splitlines()]
    assert len(written) == 2
    assert all(one["text"].startswith("the dog") and one["num_tokens"] <= 5 for one in written)
    assert "writing 2 texts of at most 5 tokens each; Ctrl-C ends it" in said.err
    too_many = headwise("generate", "--model", tmp_path / "run", "the dog", "--samples", 10**9)
    assert (too_many.status, "at most 10,000 are written" in too_many.err) == (2, True)
    once, again = (
        headwise("generate", "--model", tmp_path / "run", "the dog", "--seed", 7).out
        for _ in range(2)
    )
    assert once == again
    assert headwise("generate", "--model", tmp_path / "run", "the", "--greedy").status == 0
    assert headwise("generate", "--model", tmp_path / "run", "the", "--temperature", 0).status == 2
    assert "not UTF-8" in headwise("generate", "--model", tmp_path / "run", "the \udcff").err
    refused = headwise("generate", "--model", run, "the dog")
    assert (refused.status, "n-grams keep nothing" in refused.err) == (2, True)


def test_an_argument_that_is_no_utf_8(headwise: Headwise, run: Path) -> None:
    for command in (("score",), ("score", "--summary"), ("predict",)):
        said = headwise(*command, "--model", run, "a\udcff")
        assert (said.status, said.out) == (2, "")
        assert "not UTF-8 at character 2" in said.err


def test_what_is_no_probability_is_not_called_one(headwise: Headwise, tmp_path: Path) -> None:
    from headwise.tasks.recipe import recipe_from
    from headwise.tasks.run import train

    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    data = {"language": "en", "train": str(tmp_path / "text.txt")}
    for kind in ("stupid_backoff", "maximum_likelihood"):
        model = {"order": 2, "smoothing": {"kind": kind}}
        train(
            recipe_from({"task": "language_modeling", "data": data, "model": model}),
            run=tmp_path / kind,
        )
    for command in ("score", "predict"):
        assert (
            "sum to more than 1"
            in headwise(command, "--model", tmp_path / "stupid_backoff", "the dog").out
        )
        assert (
            "sum to more than 1"
            not in headwise(command, "--model", tmp_path / "maximum_likelihood", "the dog").out
        )
    impossible = headwise(
        "score", "--model", tmp_path / "maximum_likelihood", "zebras xylophones"
    ).out
    assert "impossible to this model" in impossible
    assert "gives them the probability of <unk>" not in impossible
    nothing = headwise("predict", "--model", tmp_path / "maximum_likelihood", "the zebras")
    assert (
        nothing.status,
        "nothing can follow: this model keeps no probability" in nothing.out,
    ) == (0, True)
