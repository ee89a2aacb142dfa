"""Translations while training: what is logged is what the finished model scores, and the training
does not notice."""

import json
from pathlib import Path
from typing import Any

import pytest

from headwise.data.pairs.preparation import read_part
from headwise.evaluation.translation import score_translations
from headwise.tasks.recipe import load_translation_recipe, recipe_from
from headwise.tasks.run import train
from headwise.tasks.translation.length_limits import MAX_SOURCE_TOKENS
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.translator import Translator
from headwise.training.progress import Progress
from tests.tasks.tiny import tiny_recipe
from tests.tasks.translation.test_task import digest

CHANGES = (
    "training.validate_every=2",
    "training.steps=6",
    "training.checkpoint_every=3",
    "training.schedule={kind: constant, peak: 0.01}",
    "data.test=null",
    "data.train={kind: pocket, split: train, count: 200}",
    "text.size=300",
    "model.dropout={residual: 0.1, embedding: 0.1, attention: 0.1, hidden: 0.1}",
)
NUM_SENTENCES = 5


class Stop(Exception):
    pass


class Impatient:
    """Leaves in the middle."""

    def note(self, text: str) -> None: ...

    def count(self, label: str, done: int, total: int | None) -> None: ...

    def share(self, label: str, done: float) -> None: ...

    def training(self, progress: Progress) -> None:
        if progress.step >= 5:
            raise Stop


def validations(run: Path) -> list[dict[str, Any]]:
    lines = map(json.loads, (run / "log.jsonl").read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line["kind"] == "valid"]


def check_watched(recipe: TranslationRecipe, directory: Path) -> None:
    """Train without translations; and with them, killed and resumed."""
    watched = recipe_from(
        recipe.model_dump(mode="json"), [f"evaluation.validation_sentences={NUM_SENTENCES}"]
    )
    train(recipe, run=directory / "plain")
    with pytest.raises(Stop):
        train(watched, run=directory / "watched", events=Impatient())
    train(watched, run=directory / "watched", resume=True)

    assert digest(directory / "watched") == digest(directory / "plain")
    optimizer = Path("checkpoints") / "step-6" / "optimizer.safetensors"
    assert (directory / "watched" / optimizer).read_bytes() == (
        directory / "plain" / optimizer
    ).read_bytes()
    plain, shown = validations(directory / "plain"), validations(directory / "watched")
    assert [line["step"] for line in shown] == [2, 4, 6]
    assert [line["loss"] for line in plain] == [line["loss"] for line in shown]
    assert not any({"bleu", "chrf"} & line.keys() for line in plain)

    translator = Translator.load(directory / "watched" / "model")
    pairs = list(read_part(translator.recipe.data, "valid"))[:NUM_SENTENCES]
    hypotheses = [one.text for one in translator([pair.source for pair in pairs])]
    scores = score_translations(
        hypotheses, [pair.target for pair in pairs], language="de", num_resamples=0
    )
    best = min(shown, key=lambda line: float(line["loss"]))
    assert best["chrf"] == pytest.approx(scores.chrf.value)
    assert best["chrf"] > 0
    assert best["bleu"] == pytest.approx(scores.bleu.value)


def test_a_training_that_is_watched_ends_with_the_same_bits(tmp_path: Path) -> None:
    check_watched(tiny_recipe(*CHANGES), tmp_path)


@pytest.mark.prove
def test_a_recurrent_training_that_is_watched_ends_with_the_same_bits(tmp_path: Path) -> None:
    model = {
        "kind": "recurrent",
        "cell": "gru",
        "layers": 1,
        "dim": 16,
        "dropout": {"embedding": 0.1, "hidden": 0.1},
    }
    recipe = tiny_recipe(*CHANGES).model_dump(mode="json")
    check_watched(recipe_from({**recipe, "model": model}), tmp_path)


def test_only_sentences_short_enough_are_translated(tiny_run: Path) -> None:
    translator = Translator.load(tiny_run / "model")
    assert translator.fits("The dog is old.")
    assert not translator.fits("dog " * MAX_SOURCE_TOKENS)


def test_recipes_whose_time_is_told_validate_as_they_were_timed() -> None:
    assert load_translation_recipe("base").evaluation.validation_sentences == 200
    for name in ("multi30k-en-de", "multi30k-en-fr", "compare-attention"):
        assert load_translation_recipe(name).evaluation.validation_sentences == 0
