"""Language models from recipe to answers, and what bad input gets."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

import headwise
from headwise.errors import CheckpointError, DataError, SettingsError, UsageError
from headwise.exporting.export import export_arpa
from headwise.storage import write_manifest
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.language.language_model import LanguageModel, check_sentences, cut_gap
from headwise.tasks.language.minimal_pairs import score_pairs
from headwise.tasks.recipe import load_translation_recipe, recipe_from
from headwise.tasks.run import check_run, train
from headwise.tasks.translation.bundle import load_translator_bundle
from headwise.tasks.word_vectors.bundle import load_word_vectors
from headwise.weights import read_tensors, write_tensors

TEXT = [
    "the dog sleeps",
    "the cat sleeps",
    "the dog eats",
    "a cat eats the fish",
    "the fish sleeps",
] * 3


def _recipe(path: Path, *overrides: str) -> AnyRecipe:
    data = {"language": "en", "train": str(path), "valid": str(path), "test": str(path)}
    found = recipe_from(
        {"task": "language_modeling", "data": data, "model": {"order": 3}}, overrides
    )
    assert found.task == "language_modeling"
    return found


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join([*TEXT, "", "a dog"]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runs") / "mine"
    summary = train(_recipe(text), run=directory)
    assert summary.results["lines"] == 16
    assert summary.results["test"]["predictions"] == summary.results["tokens"]
    return directory


def test_the_two_questions(run: Path) -> None:
    model = headwise.LanguageModel.load(run)
    natural, odd = model.score(["the dog sleeps", "dog the sleeps"])
    assert natural.total > odd.total
    assert natural.perplexity == pytest.approx(math.exp(-natural.total / 4))
    assert [token.token for token in natural.tokens] == ["▁the", "▁dog", "▁sleeps", "</s>"]
    best = model.predict("the cat ____", count=2)
    assert best[0].text == "sleeps"
    assert best[0].log_probability == pytest.approx(
        model.score(["the cat sleeps"])[0].tokens[2].log_probability
    )
    pairs = model.predict("a cat", count=3, length=2)
    assert pairs[0].tokens[0] == "▁eats"
    assert pairs[0].log_probability >= pairs[1].log_probability


def test_a_sentence_of_unknown_words_is_finite_and_said(run: Path) -> None:
    (score,) = LanguageModel.load(run).score(["zebras xylophones"])
    assert score.num_unknown == 2
    assert math.isfinite(score.total)
    assert score.as_dict()["unknown"] == 2


def test_a_text_is_its_sentences_whatever_the_parts(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scored in one array, in parts and threads, it has the numbers of its sentences one by one."""
    model = LanguageModel.load(run)
    lines = [*TEXT, "", "zebras sleep", "the café", "  the\tdog\n"] * 3
    one_by_one = model.score(lines)
    monkeypatch.setattr("headwise.tasks.language.language_model.BLOCK", 23)
    monkeypatch.setattr("headwise.tasks.language.language_model.PART", 5)
    whole = model.score_text(iter(lines))
    assert whole.num_predictions == sum(len(one.tokens) for one in one_by_one)
    assert whole.num_unknown == sum(one.num_unknown for one in one_by_one) == 9
    assert whole.total == pytest.approx(sum(one.total for one in one_by_one), rel=1e-6)


def test_what_is_impossible_is_null_in_json(text: Path, tmp_path: Path) -> None:
    train(_recipe(text, "model.smoothing.kind=maximum_likelihood"), run=tmp_path / "run")
    (score,) = LanguageModel.load(tmp_path / "run").score(["zebras"])
    assert score.perplexity == math.inf
    assert json.loads(json.dumps(score.as_dict()))["log_probability"] is None


@pytest.mark.parametrize("kind", ["characters", "sentencepiece"])
def test_other_tokens(kind: str, text: Path, tmp_path: Path) -> None:
    size = 300 if kind == "sentencepiece" else 50
    train(_recipe(text, f"text={{kind: {kind}, size: {size}}}"), run=tmp_path / "run")
    model = LanguageModel.load(tmp_path / "run")
    right, wrong = model.score(["the dog sleeps", "the dgo sleeps"])
    assert right.total > wrong.total
    assert model.predict("the ca", count=1)
    every = model.predict("the dog", count=model.tokenizer.size)
    assert all(one.text for one in every)
    (space,) = (one for one in every if one.tokens == ("▁",))
    assert (space.text, space.label) == (" ", "▁")


def test_check_tells_the_cost_and_leaves_nothing(text: Path, tmp_path: Path) -> None:
    summary = check_run(_recipe(text), directory=tmp_path)
    assert (summary.results["lines"], summary.results["vocabulary"]) == (16, 11)
    counted = train(_recipe(text), run=tmp_path / "run").results
    assert summary.results["parameters"] == counted["parameters"], "a short text is counted whole"
    assert {"expected_seconds", "expected_memory_mib"} <= set(summary.results)
    assert summary.model is None


def test_arpa_out_and_in(run: Path, tmp_path: Path) -> None:
    path = export_arpa(run, tmp_path / "model.arpa.gz")
    ours, theirs = (LanguageModel.load(place).score(TEXT) for place in (run, path))
    assert [one.total for one in ours] == pytest.approx([one.total for one in theirs], abs=1e-4)
    with pytest.raises(UsageError, match="is not the name of an ARPA file"):
        export_arpa(run, tmp_path / "model.txt")


def test_characters_come_back_from_arpa(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(
        "判断这个词的词性\n这个\u3000词 的词性\n" * 3, encoding="utf-8"
    )
    train(_recipe(tmp_path / "text.txt", "text={kind: characters}"), run=tmp_path / "run")
    path = export_arpa(tmp_path / "run", tmp_path / "zh.arpa.xz")
    lines = ["判断这个词的词性", "这个\u3000词 的", "磁性"]
    ours, theirs = (LanguageModel.load(place).score(lines) for place in (tmp_path / "run", path))
    assert [one.total for one in ours] == pytest.approx([one.total for one in theirs], abs=1e-4)
    assert [one.num_unknown for one in theirs] == [0, 0, 1]
    assert len(theirs[0].tokens) == 9


def test_gaps() -> None:
    assert cut_gap("判断这个词的____。") == "判断这个词的"
    assert cut_gap("我们去＿＿。") == "我们去"
    for text in ("He said ...", "a ... b", "the cat …", "他说……"):
        assert cut_gap(text) == text  # dots are punctuation, not a gap
    assert cut_gap("no gap") == "no gap"
    with pytest.raises(UsageError, match="the gap stands before 'sleeps'"):
        cut_gap("the ____ sleeps")


def test_pairs(run: Path, tmp_path: Path) -> None:
    model = LanguageModel.load(run)
    path = tmp_path / "pairs.tsv"
    path.write_text(
        "dog the sleeps\tthe dog sleeps\nthe cat\tthe cat\nthe dog eats\teats dog the\n",
        encoding="utf-8",
    )
    result = score_pairs(model, path)
    assert (result.num_pairs, result.num_right, result.num_equal, result.accuracy) == (2, 1, 1, 0.5)
    path.write_text("zebra yaks\tyaks zebra it\ndog the sleeps\tthe dog sleeps\n", encoding="utf-8")
    result = score_pairs(model, path)
    assert (result.num_pairs, result.num_right, result.num_unknown, result.accuracy) == (
        1,
        1,
        1,
        1.0,
    )
    path.write_text("zebra yaks\tyaks\n", encoding="utf-8")
    assert score_pairs(model, path).as_dict() == {
        "accuracy": None,
        "pairs": 0,
        "right": 0,
        "equal_left_out": 0,
        "unknown_left_out": 1,
    }
    path.write_text("the cat\tthe cat\n", encoding="utf-8")
    with pytest.raises(DataError, match="has no pair of two different sentences"):
        score_pairs(model, path)
    path.write_text("a\tb\nonly one\n", encoding="utf-8")
    with pytest.raises(DataError, match="the line has 1 column"):
        score_pairs(model, path)


@pytest.mark.parametrize(
    ("content", "overrides", "error", "message"),
    [
        ("", (), DataError, "is empty; a corpus needs at least one line"),
        ("\n \n", (), DataError, "data.valid has no line with text"),
        (
            "\n",
            ("data.valid=null", "data.test=null"),
            DataError,
            "the text to learn the words from is empty",
        ),
        ("word\n" + "x" * (1 << 20) + "\n", (), DataError, "is longer than 65,536 bytes"),
        (
            "word\n",
            (),
            DataError,
            r"data\.train has 1 word\(s\), and nothing can be learnt of what follows what",
        ),
        ("word\n", ("model.order=0",), SettingsError, "model.order: must be at least 1, not 0"),
        ("word\n", ("model.smoothing.kind=guess",), SettingsError, "no kind 'guess'"),
        ("word\n", ("training.steps=5",), SettingsError, "n-grams are counted, not trained"),
    ],
)
def test_bad_input_leaves_nothing(
    content: str, overrides: tuple[str, ...], error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "text.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(error, match=message):
        train(_recipe(path, *overrides), run=tmp_path / "runs" / "mine")
    assert [child.name for child in tmp_path.iterdir()] == ["text.txt"]


@pytest.mark.parametrize("part", ["valid", "test"])
@pytest.mark.parametrize(
    ("line", "message"),
    [(b"caf\xe9", "not UTF-8"), (b"x" * (1 << 17), "is longer than 65,536 bytes")],
)
def test_a_bad_line_shows_before_the_work(
    part: str, line: bytes, message: str, text: Path, tmp_path: Path
) -> None:
    (tmp_path / "bad.txt").write_bytes(b"the dog\n" + line + b"\n")
    with pytest.raises(DataError, match=message) as caught:
        train(_recipe(text, f"data.{part}={tmp_path}/bad.txt"), run=tmp_path / "run")
    assert caught.value.line == 2
    assert [child.name for child in tmp_path.iterdir()] == ["bad.txt"]


def test_a_word_twice_is_enough(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("word word\n", encoding="utf-8")
    train(_recipe(tmp_path / "text.txt"), run=tmp_path / "run")
    model = LanguageModel.load(tmp_path / "run")
    probabilities = np.exp(model.model.next_words([[], [4]]))
    assert probabilities.sum(axis=1) == pytest.approx(1.0, abs=1e-5)


def test_models_of_another_task_are_refused(run: Path) -> None:
    with pytest.raises(
        CheckpointError,
        match="is a language model, a bundle of word vectors is needed; use `headwise predict`",
    ):
        load_word_vectors(run)
    with pytest.raises(CheckpointError, match="is a language model, a translator is needed"):
        load_translator_bundle(run)
    with pytest.raises(SettingsError, match="the recipe's task is language_modeling"):
        load_translation_recipe("ptb-ngram")


def test_tables_that_do_not_fit_are_refused(run: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(run / "model", tmp_path / "model")
    file = tmp_path / "model" / "weights.safetensors"
    good = read_tensors(file, lowest=-math.inf)
    damages = {
        "2.keys": good["2.keys"].flip(0),
        "3.keys": good["3.keys"] + 10**9,
        "1.weights": good["1.weights"][:-1],
        "floor": good["floor"].float(),
        "other": good["floor"] + 1,
    }
    for name, tensor in damages.items():
        write_tensors(file, {**good, name: tensor})
        write_manifest(tmp_path / "model", kind="bundle")
        with pytest.raises(
            CheckpointError, match="does not hold the n-grams its recipe and tokenizer speak of"
        ):
            LanguageModel.load(tmp_path / "model")
    for number in (torch.nan, torch.inf):
        write_tensors(file, {**good, "2.probabilities": good["2.probabilities"] + number})
        write_manifest(tmp_path / "model", kind="bundle")
        with pytest.raises(CheckpointError, match=r"NaN or infinite \(in 2\.probabilities\)"):
            LanguageModel.load(tmp_path / "model")


def test_a_sentence_too_long_for_an_argument(run: Path) -> None:
    with pytest.raises(UsageError, match="a sentence of 1,048,576 characters is longer"):
        LanguageModel.load(run).score(["x" * (1 << 20)])
    assert check_sentences([" the dog\n"]) == ["the dog"]


def test_a_search_ends_when_nothing_can_overtake(run: Path) -> None:
    model = headwise.LanguageModel.load(run)
    endless, long = (model.predict("the", count=2, length=length) for length in (10**9, 40))
    assert endless == long
    assert all(one.tokens[-1] == "</s>" for one in endless)


def test_more_continuations_than_there_is_room_for(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = headwise.LanguageModel.load(run)
    monkeypatch.setattr(
        "headwise.tasks.language.language_model.MAX_CANDIDATES", 5 * model.tokenizer.size
    )
    assert len(model.predict("the", count=7)) == 7
    with pytest.raises(
        UsageError,
        match="the 7 likeliest continuations of several tokens are more than can be weighed",
    ):
        model.predict("the", count=7, length=2)
