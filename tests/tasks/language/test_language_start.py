"""A language model starts from another one: its tokenizer, its weights, and what is refused."""

from pathlib import Path

import pytest
import torch

from headwise.errors import CheckpointError
from headwise.tasks.events import Silence
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.language.recipe import LanguageRecipe
from headwise.tasks.recipe import recipe_from
from headwise.tasks.run import train
from headwise.weights import read_tensors

TRAINING = {"steps": 2, "batch_tokens": 64, "precision": "fp32", "compile": "off", "patience": None}
MODELS = {
    "decoder_only": {"kind": "decoder_only", "dim": 8, "layers": 2, "heads": 2},
    "recurrent": {"kind": "recurrent", "dim": 6, "hidden": 7, "layers": 1},
    "neural_ngram": {"kind": "neural_ngram", "dim": 5, "hidden": 6, "order": 3},
}
STILL = {**TRAINING, "steps": 1, "schedule": {"kind": "constant", "peak": 1e-9}}


class Notes(Silence):
    """What is said before training."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def recipe_of(folder: Path, model: dict[str, object], **changes: object) -> LanguageRecipe:
    lines = {"one": "the cat sleeps\nthe dog eats\n", "two": "a dog sleeps\nthe cat eats a fish\n"}
    for name, text in lines.items():
        (folder / name).write_text(text * 20, encoding="utf-8")
    data = {
        "task": "language_modeling",
        "data": {"language": "en", "train": str(folder / "one")},
        "text": {"kind": "words"},
        "model": model,
        "training": TRAINING,
    }
    recipe = recipe_from({**data, **changes})
    assert isinstance(recipe, LanguageRecipe)
    return recipe


@pytest.mark.parametrize("kind", MODELS)
def test_weights_and_words_are_taken_over(kind: str, tmp_path: Path) -> None:
    train(recipe_of(tmp_path, MODELS[kind]), run=tmp_path / "base")
    other = {"language": "en", "train": str(tmp_path / "two")}
    model = {**MODELS[kind], "start_from": str(tmp_path / "base")}
    notes = Notes()
    recipe = recipe_of(tmp_path, model, data=other, training=STILL)
    train(recipe, run=tmp_path / "run", events=notes)
    before, after = (read_tensors(tmp_path / name / "model/weights.safetensors")
                     for name in ("base", "run"))  # fmt: skip
    assert before.keys() == after.keys()
    assert all(torch.allclose(before[name], after[name], atol=1e-6) for name in before)
    assert any(f"{len(before)} weights taken over" in note for note in notes.notes)
    base, run = (LanguageModel.load(tmp_path / name) for name in ("base", "run"))
    text = "the cat eats"
    assert run.score([text])[0].perplexity == pytest.approx(
        base.score([text])[0].perplexity, rel=1e-4
    )


def test_frozen_weights_stay(tmp_path: Path) -> None:
    train(recipe_of(tmp_path, MODELS["decoder_only"]), run=tmp_path / "base")
    model = {**MODELS["decoder_only"], "start_from": str(tmp_path / "base")}
    training = {**TRAINING, "freeze": ["layers 0"]}
    train(recipe_of(tmp_path, model, training=training), run=tmp_path / "run")
    before, after = (read_tensors(tmp_path / name / "model/weights.safetensors")
                     for name in ("base", "run"))  # fmt: skip
    assert {name for name in before if torch.equal(before[name], after[name])} == {
        name for name in before if name.startswith("blocks.0.")
    }


def test_more_layers_are_listed(tmp_path: Path) -> None:
    train(recipe_of(tmp_path, MODELS["decoder_only"]), run=tmp_path / "base")
    model = {**MODELS["decoder_only"], "layers": 3, "start_from": str(tmp_path / "base")}
    notes = Notes()
    train(recipe_of(tmp_path, model), run=tmp_path / "run", events=notes)
    assert any("new, at random: blocks.2" in note for note in notes.notes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": {"dim": 4}}, r"model\.dim=8 there, 4 here"),
        ({"text": {"kind": "characters"}}, r"text\.kind=words there, characters here"),
        ({"model": MODELS["recurrent"]}, r"model\.kind=decoder_only there, recurrent here"),
    ],
)
def test_another_vocabulary_width_or_kind_is_refused(
    change: dict[str, dict[str, object]], message: str, tmp_path: Path
) -> None:
    train(recipe_of(tmp_path, MODELS["decoder_only"]), run=tmp_path / "base")
    start = {"start_from": str(tmp_path / "base")}
    model = {**MODELS["decoder_only"], **start} | change.get("model", {})
    if "kind" in change.get("model", {}):
        model = {**change["model"], **start}
    recipe = recipe_of(tmp_path, model, text=change.get("text", {"kind": "words"}))
    with pytest.raises(CheckpointError, match=message):
        train(recipe, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_start_that_is_not_there_or_of_another_task(tiny_run: Path, tmp_path: Path) -> None:
    for start, message in (
        (tmp_path / "none", "nothing is there; train the language model first"),
        (tiny_run, "is a translator, a language model is needed"),
    ):
        model = {**MODELS["decoder_only"], "start_from": str(start)}
        with pytest.raises(CheckpointError, match=message):
            train(recipe_of(tmp_path, model), run=tmp_path / "run")
