"""Each command as a new user would run it."""

import hashlib
import json
import logging
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headwise.data.known import corpora as known
from headwise.data.known.table import KnownCorpusEntry, KnownFile
from headwise.tasks.recipe import load_recipe
from headwise.tasks.recipe_files import shipped_recipes
from tests.cli.conftest import Headwise
from tests.tasks.tiny import OVERRIDES

SHORT = ("data.valid=null", "data.test=null")


def test_train_takes_overrides_before_and_after_options(headwise: Headwise) -> None:
    answer = headwise(
        "train", "pocket", *OVERRIDES, "--run", "run", "training.steps=1", "--json", *SHORT
    )
    assert answer.status == 0
    result = json.loads(answer.out)
    assert result["steps"] == 1
    assert result["model"] == "run/model"
    assert "300 pairs, vocabulary 500" in answer.err
    again = headwise("train", "pocket", *OVERRIDES, "--run", "run", "training.steps=1", *SHORT)
    assert again.status == 2
    assert "--resume" in again.err
    more = headwise(
        "train", "pocket", *OVERRIDES, "--run", "run", "--resume", "training.steps=2", *SHORT
    )
    assert more.status == 0
    assert "steps\t2" in more.out
    assert "headwise translate --model run/model" in more.out
    assert more.err.count("step 2/2") == 1, "the last line is said once"


def test_train_can_check_without_training(headwise: Headwise) -> None:
    answer = headwise("train", "--check", "pocket", *OVERRIDES)
    assert answer.status == 0
    assert "pairs\t300" in answer.out
    assert list(Path().iterdir()) == []


def test_checking_refuses_what_training_would(headwise: Headwise) -> None:
    check = ("train", "--check", "pocket", *OVERRIDES)
    large = headwise(*check, "training.batch_tokens=100000000")
    assert large.status == 2
    assert " parts: training.batch_tokens=" in large.err
    assert (
        headwise("train", "pocket", *OVERRIDES, "--run", "run", "training.steps=1", *SHORT).status
        == 0
    )
    other = headwise(*check, *SHORT, "--run", "run", "--resume", "training.steps=1", "model.dim=32")
    assert other.status == 2
    assert "model.dim: 16 → 32" in other.err
    assert headwise(*check, *SHORT, "--run", "run", "--resume", "training.steps=3").status == 0
    assert "holds a run already" in headwise(*check, *SHORT, "--run", "run").err
    anew = headwise(*check, "--run", "none", "--resume")
    assert anew.status == 0
    assert "nothing to resume in none: starting anew" in anew.err
    assert not Path("none").exists()
    assert headwise(*check, "--resume").err.startswith("headwise: error: --resume needs --run DIR")


def test_a_batch_larger_than_the_corpus_is_noted(headwise: Headwise) -> None:
    answer = headwise("train", "--check", "pocket", *OVERRIDES, "training.batch_tokens=50000")
    assert answer.status == 0
    assert (
        "an update takes 50,000 tokens, but the whole training data has 6,227: each update would "
        "contain all of it about 8.0 times"
    ) in answer.err
    assert "lower training.batch_tokens" in answer.err


def test_notices_of_training_are_plain_lines(
    headwise: Headwise, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headwise.cli import recipes

    def notice(arguments: object) -> int:
        logging.getLogger("headwise.training.loop").warning("no compiler; %s", "running uncompiled")
        return 0

    monkeypatch.setattr(recipes, "run", notice)
    assert headwise("recipes").err == "headwise: note: no compiler; running uncompiled\n"
    assert (
        headwise("--lang", "zh", "recipes").err
        == "headwise: 提示: no compiler; running uncompiled\n"
    )
    assert not logging.getLogger("headwise").handlers


CONTENT = b"\xef\xbb\xbfThe cat sleeps.\r\n\r\nLaura has two dogs.\n\n  \nThe cat sleeps."


def test_a_model_that_is_none_or_damaged(headwise: Headwise, tiny_run: Path) -> None:
    Path("in.txt").write_bytes(CONTENT)
    for path, told in (
        ("none", "does not exist"),
        ("in.txt", "is not a model"),
        (".", "is not a model"),
    ):
        answer = headwise("translate", "--model", path, "in.txt")
        assert (answer.status, told in answer.err) == (3, True)
    shutil.copytree(tiny_run / "model", "copy")
    weights = Path("copy/weights.safetensors")
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x07")
    for words in (["translate", "--model", "copy", "in.txt"], ["describe", "copy"]):
        answer = headwise(*words)
        assert (answer.status, "copy/weights.safetensors: is damaged" in answer.err) == (3, True)
    answer = headwise("doctor", "copy")
    assert (answer.status, "✗ copy: copy/weights.safetensors: is damaged" in answer.out) == (
        3,
        True,
    )
    assert "已损坏" in headwise("--lang", "zh", "doctor", "copy").out


def test_evaluate(headwise: Headwise, tiny_run: Path) -> None:
    Path("source").write_text("The cat sleeps.\nLaura has two dogs.\n", encoding="utf-8")
    Path("reference").write_text("Die Katze schläft.\nLaura hat zwei Hunde.\n", encoding="utf-8")
    Path("short").write_text("x\n", encoding="utf-8")
    answer = headwise(
        "evaluate", "--model", tiny_run, "--source", "source", "--reference", "reference", "--json"
    )
    assert answer.status == 0
    assert {"bleu", "chrf", "ter", "signature", "sentences"} <= json.loads(answer.out).keys()
    table = headwise(
        "evaluate", "--hypothesis", "reference", "--reference", "reference", "--against", "source"
    )
    assert "BLEU\t100.00\t" in table.out
    assert "BLEU: 100.00 against " in table.out
    refused = headwise("evaluate", "--hypothesis", "short", "--reference", "reference")
    assert (refused.status, "reference: has 2 lines, but short gives 1" in refused.err) == (3, True)


def test_describe(headwise: Headwise, tiny_run: Path) -> None:
    assert "cross-attention" in headwise("describe", tiny_run).out
    assert json.loads(headwise("describe", "base", "model.dim=64", "--json").out)["parameters"] > 0


def test_recipes_and_schema(headwise: Headwise) -> None:
    listed = headwise("recipes").out
    assert all(name in listed for name in shipped_recipes())
    assert json.loads(headwise("recipes", "--json").out) == {
        name: recipe.summary for name, recipe in shipped_recipes().items()
    }
    Path("mine.yaml").write_text(headwise("recipes", "base").out, encoding="utf-8")
    assert load_recipe("mine.yaml") == load_recipe("base")
    assert "did you mean 'base'?" in headwise("recipes", "bsae").err
    schema = json.loads(headwise("schema").out)
    assert {"data", "text", "model", "training", "decoding"} <= schema["properties"].keys()
    assert (
        schema["$defs"]["TranslationTraining"]["properties"]["steps"]["description"]
        == "Number of updates."
    )


TEXT = b"hello\tHallo\n" * 7


class MadeCorpus(KnownCorpusEntry):
    @property
    def files(self) -> tuple[KnownFile, ...]:
        return (KnownFile("made/pairs.tsv", hashlib.sha256(TEXT).hexdigest(), len(TEXT), None),)


def test_data(headwise: Headwise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        known, "CORPORA", (MadeCorpus("made", "pairs", "句对", "ours", "made here"),)
    )
    mirror = tmp_path / "known" / "made"
    assert json.loads(headwise("data", "list", "--json").out)[0]["here"] is False
    nothing = headwise("data", "check")
    assert (nothing.status, "nothing to check" in nothing.err) == (0, True)
    failed = headwise("data", "fetch", "made", "made")
    assert (
        failed.status,
        failed.err.count("made has no address it can be fetched from: made here"),
    ) == (3, 2), "all are tried"
    assert headwise("data", "check", "made").status == 3
    mirror.mkdir(parents=True)
    (mirror / "pairs.tsv").write_bytes(TEXT)
    assert "✓" in headwise("data", "list").out
    assert "句对" in headwise("--lang", "zh", "data", "list").out
    assert headwise("data", "fetch", "made").out == f"{mirror / 'pairs.tsv'}\n"
    assert headwise("data", "check").out.startswith("right\t")
    (mirror / "pairs.tsv").write_bytes(TEXT + b"!")
    wrong = headwise("data", "check", "made", "--json")
    assert (wrong.status, json.loads(wrong.out)[0]["state"]) == (3, "wrong")
    unknown = headwise("data", "fetch", "mde")
    assert (unknown.status, "no known corpus is called 'mde'" in unknown.err) == (2, True)


def test_a_sentence_needs_neither_compiler_nor_algebra(tiny_run: Path) -> None:
    """What torch's compiler drags in takes three times as long to load as torch; a sentence needs
    none of it."""
    code = (
        "import sys; from headwise.cli.main import main; main(sys.argv[1:]);print([name for name "
        "in ('torch._dynamo', 'torch._inductor', 'sympy', 'triton', 'transformers', 'sacrebleu', "
        "'rich') if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, "translate", "--model", str(tiny_run)]
    answer = subprocess.run(
        command, input="The cat sleeps.\n", capture_output=True, text=True, check=True
    )
    assert answer.stdout.splitlines()[-1] == "[]"


def test_compare_refuses_what_it_cannot_read(headwise: Headwise) -> None:
    answer = headwise(
        "compare", "pocket", "model.dim=16,32", "--seeds", "1,two", "--directory", "here"
    )
    assert answer.status == 2
    assert "--seeds 1,two is not a list of whole numbers" in answer.err
    assert headwise("compare", "pocket", "--directory", "here").status == 2
    assert list(Path().iterdir()) == []


def test_compare_attention_prints_tables(headwise: Headwise) -> None:
    options = (
        "--kinds",
        "full,fused",
        "--lengths",
        "8,16",
        "--heads",
        2,
        "--head-dim",
        4,
        "--device",
        "cpu",
    )
    answer = headwise("compare", "attention", "--directory", "here", *options)
    assert answer.status == 0
    assert "# forward + backward, ms" in answer.out
    assert json.loads(
        headwise("compare", "attention", "--directory", "here", *options, "--json").out
    )["points"]
    assert (
        "takes no recipe" in headwise("compare", "attention", "pocket", "--directory", "here").err
    )
    wrong = headwise("compare", "pocket", "base", "--lengths", "8", "--directory", "here")
    assert wrong.status == 2
    assert "--lengths belongs to `headwise compare attention`" in wrong.err
    wrong = headwise("compare", "attention", "--beginning", "the", "--directory", "here")
    assert (wrong.status, "--beginning belongs to `headwise compare lineage`" in wrong.err) == (
        2,
        True,
    )


def test_compare_parallel_prints_a_table(
    headwise: Headwise, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwise.comparing.parallel_timing.MIN_TIMED", 3)
    Path("a.en").write_text("The dog is old.\nA cat sleeps.\n", encoding="utf-8")
    Path("a.de").write_text("Der Hund ist alt.\nEine Katze schläft.\n", encoding="utf-8")
    words = ("compare", "parallel", tiny_run, "--source", "a.en", "--reference", "a.de")
    options = ("--batches", "2", "--rounds", 1, "--device", "cpu")
    answer = headwise(*words, *options, "--json", "--plot", "speed.svg")
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    assert (found["sentences"], found["batches"]) == (2, [1, 2])
    own = [row["decoding"] for row in found["rows"] if "CTranslate2" not in row["decoding"]]
    assert own == ["greedy", "beam 5"]
    assert Path("speed.svg").stat().st_size > 1000
    for wrong, message in (
        (("--plot", "x.txt"), "'x.txt' does not end in .png or .svg"),
        (("--directory", "here"), "`compare parallel` does not take --directory"),
        (("--jobs", 2), "`compare parallel` does not take --jobs"),
        (("--batches", "many"), "--batches many is not a list of whole numbers"),
    ):
        answer = headwise(*words, *wrong)
        assert (answer.status, message in answer.err) == (2, True), answer.err
    answer = headwise("compare", "parallel", "nowhere")
    assert (answer.status, "nowhere" in answer.err) == (3, True), answer.err
    answer = headwise("compare", "pocket", "model.dim=8,16")
    assert (answer.status, "was given no --directory" in answer.err) == (2, True)
    answer = headwise("compare", "pocket", "base", "--directory", "x", "--batches", "1")
    assert "--batches belongs to `headwise compare parallel`" in answer.err
    answer = headwise("compare", "attention", "--directory", "x", "--precision", "int8")
    assert "--precision int8 is not measured for attention" in answer.err
