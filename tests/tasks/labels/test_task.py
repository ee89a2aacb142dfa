"""Classifiers and taggers from recipe to answers, resumed, and what bad input gets."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import headwise
from headwise.errors import CheckpointError, DataError, SettingsError, UsageError
from headwise.storage import write_manifest
from headwise.tasks.bundle_form import KIND
from headwise.tasks.events import Silence
from headwise.tasks.labels.data import prepare_labels
from headwise.tasks.labels.labeller import Labeller
from headwise.tasks.labels.recipe import LabelRecipe
from headwise.tasks.recipe import recipe_from
from headwise.tasks.run import check_run, train
from headwise.tasks.translation.bundle import load_translator_bundle
from headwise.training.progress import Progress
from headwise.weights import read_tensors

GOOD = ["good film", "a good day", "very good", "good good time", "the film was good"]
BAD = ["bad film", "a bad day", "very bad", "bad bad time", "the film was bad"]
SAW = (
    "I/P saw/V a/D saw/N\nwe/P saw/V the/D saw/N\na/D saw/N cuts/V\nI/P saw/V it/P\nthe/D saw/N "
    "cuts/V it/P\n"
)
TRAINING = {
    "steps": 40,
    "batch_tokens": 64,
    "schedule": {"kind": "constant", "peak": 0.01},
    "log_every": 10,
    "validate_every": 20,
    "checkpoint_every": 20,
    "precision": "fp32",
    "device": "cpu",
    "keep": {"best": "accuracy"},
}
MODEL = {"dim": 16, "layers": 1, "heads": 2}


def write_reviews(folder: Path) -> Path:
    path = folder / "reviews.tsv"
    lines = [f"{text}\t{label}" for label, texts in (("yes", GOOD), ("no", BAD)) for text in texts]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def review_recipe(folder: Path, *overrides: str) -> Any:
    path = str(write_reviews(folder))
    data = {"language": "en", "train": path, "valid": path, "test": path, "row_tokens": 16}
    return recipe_from(
        {"task": "classification", "data": data, "model": MODEL, "training": TRAINING}, overrides
    )


def tag_recipe(folder: Path, *overrides: str) -> Any:
    (folder / "tags.txt").write_text(SAW, encoding="utf-8")
    corpus = {"path": str(folder / "tags.txt"), "kind": "slashed"}
    data = {"language": "en", "train": corpus, "valid": corpus, "test": corpus, "row_tokens": 8}
    return recipe_from(
        {"task": "tagging", "data": data, "model": MODEL, "training": TRAINING}, overrides
    )


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reviews")
    train(review_recipe(folder), run=folder / "run")
    return folder / "run"


def test_a_classifier_learns_and_answers(reviews: Path) -> None:
    labeller = headwise.Labeller.load(reviews)
    answers = labeller(["a good film", "a bad film", ""])
    assert [answer.label for answer in answers[:2]] == ["yes", "no"]
    assert sum(answers[0].distribution[0].values()) == pytest.approx(1.0)
    assert answers[0].probability == max(answers[0].distribution[0].values())
    assert labeller([]) == []
    lone = labeller(["a bad film"])[0]
    assert lone.probability == pytest.approx(answers[1].probability, abs=1e-5), (
        "company changes nothing"
    )
    results = json.loads((reviews / "model" / "results.json").read_text(encoding="utf-8"))
    assert results["test"]["accuracy"] == 1.0
    assert [one["label"] for one in results["test"]["classes"]] == ["no", "yes"]
    lines = [
        json.loads(line)
        for line in (reviews / "log.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert any("accuracy" in line for line in lines)


@pytest.mark.parametrize("model", [{"letters": 101}, {"letters": 101, "spelling": "runs"}])
def test_sentences_without_a_word_are_encoded_with_letters_too(
    model: dict[str, Any], tmp_path: Path
) -> None:
    recipe = tag_recipe(tmp_path, *(f"model.{key}={value}" for key, value in model.items()))
    form = prepare_labels(recipe, Silence(), tokenizer=None).form
    empty, full = form.encode([(), ()]), form.encode([(), ("I",)])
    assert empty.affixes is not None
    assert full.affixes is not None
    assert (len(empty), empty.affixes.shape) == (2, (0, full.affixes.shape[1]))


def test_measuring_labelled_text(reviews: Path, tmp_path: Path) -> None:
    (tmp_path / "some.tsv").write_text("a good film\tyes\na bad film\tyes\n", encoding="utf-8")
    labeller = Labeller.load(reviews)
    assert labeller.measure(str(tmp_path / "some.tsv")).accuracy == 0.5
    with pytest.raises(UsageError, match=r"'some\.txt' is no labelled text"):
        labeller.measure("some.txt")


def test_the_three_rungs_and_the_two_saws(tmp_path: Path) -> None:
    accuracy = {}
    for kind in ("word", "window", "encoder"):
        model = {"kind": kind, "dim": 16} | ({"layers": 1, "heads": 2} if kind == "encoder" else {})
        found = train(tag_recipe(tmp_path, f"model={json.dumps(model)}"), run=tmp_path / kind)
        accuracy[kind] = found.results["test"]["accuracy"]
    assert accuracy["word"] < accuracy["window"] == accuracy["encoder"] == 1.0
    answer = Labeller.load(tmp_path / "encoder")(["I saw a saw"])[0]
    assert answer.labels == ("P", "V", "D", "N")
    assert answer.as_dict(is_tagged=True)["words"] == ["I", "saw", "a", "saw"]


def test_a_sentence_longer_than_a_row_is_tagged_whole(tmp_path: Path) -> None:
    train(tag_recipe(tmp_path, "model.letters=64", "training.steps=2"), run=tmp_path / "run")
    words = " ".join(["I saw it"] * 9)
    assert len(Labeller.load(tmp_path / "run")([words])[0].labels) == 27


@pytest.mark.parametrize("spelling", ["affixes", "runs"])
def test_an_unseen_word_is_classified_by_its_letters(tmp_path: Path, spelling: str) -> None:
    """In a bag of words and their letters, words that were never seen still remind of others."""
    model = {"kind": "word", "dim": 16, "letters": 997, "spelling": spelling, "pairs": 997}
    train(review_recipe(tmp_path, f"model={json.dumps(model)}"), run=tmp_path / "run")
    labeller = Labeller.load(tmp_path / "run")
    assert [answer.labels for answer in labeller(["goodly", "badly", "very good", "bad"])] == [
        ("yes",),
        ("no",),
        ("yes",),
        ("no",),
    ]


def test_resumed_is_uninterrupted(reviews: Path, tmp_path: Path) -> None:
    class Stopping(Silence):
        def training(self, progress: Progress) -> None:
            if progress.step == 27:
                raise KeyboardInterrupt

    recipe = review_recipe(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, run=tmp_path / "run", events=Stopping())
    whole = train(recipe, run=tmp_path / "whole")
    resumed = train(recipe, run=tmp_path / "run", resume=True)
    assert resumed.results["steps"] == whole.results["steps"] == 40
    one, other = (
        read_tensors(tmp_path / name / "model" / "weights.safetensors") for name in ("whole", "run")
    )
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_checking_without_learning(tmp_path: Path) -> None:
    results = check_run(review_recipe(tmp_path), directory=tmp_path).results
    assert (results["examples"], results["classes"]) == (10, 2)
    assert {"parameters", "expected_seconds", "expected_memory_mib"} <= set(results)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tx\nb\tx\n", "every label of data.train is 'x'; at least two classes"),
        (
            "1\ta b\n0\tc d\n1\te f\n0\tg\n1\th\n",
            "5 texts have 5 different labels; set label_column",
        ),
        ("", "empty"),
    ],
)
def test_data_nothing_can_be_learnt_from(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.tsv").write_text(text, encoding="utf-8")
    data = {"language": "en", "train": str(tmp_path / "a.tsv")}
    recipe = recipe_from({"task": "classification", "data": data})
    with pytest.raises(DataError, match=message):
        train(recipe, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_labels_and_splits_that_are_not_there(tmp_path: Path) -> None:
    recipe = review_recipe(tmp_path)
    (tmp_path / "test.tsv").write_text("good\tyes\nodd\tmaybe\n", encoding="utf-8")
    with pytest.raises(
        DataError, match=r"test\.tsv:2: the label 'maybe' does not occur in data\.train"
    ):
        train(
            recipe_from(recipe.model_dump(mode="json"), [f"data.test={tmp_path}/test.tsv"]),
            run=tmp_path / "run",
        )
    split = (
        f"data.valid={{path: {tmp_path}/test.tsv, split: {{by: en, part: valid, valid: 1, test: "
        f"1, of: 100000}}}}"
    )
    with pytest.raises(DataError, match=r"data\.valid has nothing to learn from or measure"):
        train(recipe_from(recipe.model_dump(mode="json"), [split]), run=tmp_path / "run")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "text={kind: characters}",
            "text.kind=characters cuts words into pieces; set text.kind=words",
        ),
        ("training.keep.best=bleu", "validation measures loss, accuracy: choose one"),
        (
            "model.position={kind: learned, max_length: 4}",
            "max_length is 4, but rows have 8 tokens",
        ),
        ("model={kind: sentence}", "no kind 'sentence'"),
    ],
)
def test_recipes_that_cannot_be(tmp_path: Path, override: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        tag_recipe(tmp_path, override)
    with pytest.raises(
        SettingsError, match=r"reads the letters of whole words, but text\.kind=characters cuts"
    ):
        review_recipe(tmp_path, "model.letters=64", "text={kind: characters}")
    with pytest.raises(SettingsError, match=r"norm\.kind=power counts every batch; use"):
        review_recipe(tmp_path, "model.norm.kind=power", "training.freeze=[output.*]")
    with pytest.raises(SettingsError, match=r"norm\.kind=power would count its batch twice"):
        review_recipe(tmp_path, "model.norm.kind=power", "training.recompute=blocks")


def test_a_bundle_of_another_task(reviews: Path, tmp_path: Path) -> None:
    with pytest.raises(
        CheckpointError, match="a translator is needed; use `headwise classify` with this one"
    ):
        load_translator_bundle(reviews)
    with pytest.raises(
        CheckpointError, match="a language model is needed; use `headwise classify`"
    ):
        headwise.LanguageModel.load(reviews)
    text = tmp_path / "text.txt"
    text.write_text("a b\nb a\n", encoding="utf-8")
    data = {"language": "en", "train": str(text)}
    train(
        recipe_from({"task": "language_modeling", "data": data, "model": {"order": 2}}),
        run=tmp_path / "lm",
    )
    with pytest.raises(
        CheckpointError, match="a classifier or tagger is needed; use `headwise predict`"
    ):
        Labeller.load(tmp_path / "lm")


def test_a_damaged_list_of_classes(tmp_path: Path) -> None:
    train(review_recipe(tmp_path, "training.steps=1"), run=tmp_path / "run")
    (tmp_path / "run" / "model" / "labels.json").write_text("[]", encoding="utf-8")
    write_manifest(tmp_path / "run" / "model", kind=KIND)
    with pytest.raises(CheckpointError, match="is not a list of classes"):
        Labeller.load(tmp_path / "run")


def test_a_recipe_knows_its_shape(tmp_path: Path) -> None:
    one, each = review_recipe(tmp_path), tag_recipe(tmp_path)
    assert isinstance(one, LabelRecipe)
    assert (one.shape, each.shape) == ("one", "each")


def test_frozen_layers_stay_the_same_to_the_last_bit(reviews: Path, tmp_path: Path) -> None:
    changes = [
        f"model.start_from={reviews}",
        "training.freeze=[encoder.*]",
        "training.average={last: 2, every: 10}",
    ]
    train(review_recipe(tmp_path, *changes, "training.layer_decay=0.5"), run=tmp_path / "run")
    before, after = (
        read_tensors(run / "model" / "weights.safetensors") for run in (reviews, tmp_path / "run")
    )
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert same == {name for name in before if name.startswith("encoder.")}


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("body.*", "matches no weight"),
        ("layers 1-3", "'layers 1-3' matches no weight"),
        ("'*'", "matches every weight"),
    ],
)
def test_a_pattern_that_freezes_nothing_or_all(tmp_path: Path, pattern: str, message: str) -> None:
    change = f"training.freeze=[{pattern}]"
    masked = {
        "task": "masked_language",
        "data": {"language": "en", "train": "missing.txt"},
        "model": MODEL,
    }
    pairs = {"task": "translation", "data": {"source": "en", "target": "de", "train": "missing"}}
    small = ["model.encoder.layers=1", "model.decoder.layers=1"]
    alone = {"data": {"language": "en", "train": "missing.txt"}}
    writer = {
        **alone,
        "task": "language_modeling",
        "model": {"kind": "recurrent", "dim": 5, "hidden": 7, "layers": 1},
    }
    for recipe in (
        recipe_from(writer, [change]),
        recipe_from({**writer, "reading": {"kind": "stream"}}, [change]),
        recipe_from({**writer, "model": {"kind": "neural_ngram"}}, [change]),
        recipe_from(
            {**writer, "model": {"kind": "decoder_only", "dim": 8, "heads": 2, "layers": 1}},
            [change],
        ),
        recipe_from(
            {**alone, "task": "bidirectional_language", "model": {"kind": "elmo", "layers": 1}},
            [change],
        ),
        review_recipe(tmp_path, change),
        recipe_from(masked, [change]),
        recipe_from(pairs, [change, *small]),
    ):
        with pytest.raises(SettingsError, match=message):
            train(recipe, run=tmp_path / "run")
        with pytest.raises(SettingsError, match=message):
            check_run(recipe, directory=tmp_path)
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("text={kind: characters}", r"another vocabulary \(text.kind=words there, characters here"),
        ("model.dim=32", "another encoder .*model.dim=16 there, 32 here"),
    ],
)
def test_starting_from_another_vocabulary_or_width(
    reviews: Path, tmp_path: Path, change: str, message: str
) -> None:
    with pytest.raises(CheckpointError, match="cannot be started from: ") as caught:
        train(review_recipe(tmp_path, f"model.start_from={reviews}", change), run=tmp_path / "run")
    assert re.search(message, str(caught.value))
    assert not (tmp_path / "run").exists()
