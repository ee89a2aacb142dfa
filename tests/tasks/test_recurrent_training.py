"""Recurrent models: taggers from recipe to answers, and what training they have no form for."""

from pathlib import Path

import pytest
import torch

from headwise.errors import CheckpointError, SettingsError
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.labels.labeller import Labeller
from headwise.tasks.planner import plan_recipe
from headwise.tasks.pretraining.contextual_vectors import Occurrence, load_word_reader
from headwise.tasks.recipe import recipe_from
from headwise.tasks.run import train
from headwise.weights import read_tensors
from tests.tasks.every_task import recipe_of
from tests.tasks.labels.test_task import tag_recipe


def test_a_recurrent_tagger_is_trained_loaded_and_started_from(tmp_path: Path) -> None:
    kind = "model={kind: recurrent, cell: gru, dim: 16, layers: 2}"
    train(tag_recipe(tmp_path, kind), run=tmp_path / "one")
    assert Labeller.load(tmp_path / "one")(["I saw a saw"])[0].labels == ("P", "V", "D", "N")
    changes = [
        kind,
        f"model.start_from={tmp_path / 'one'}",
        "training.freeze=[encoder.embedding.*, layers 0]",
    ]
    train(
        tag_recipe(tmp_path, *changes, "training.steps=3", "training.precision=bf16"),
        run=tmp_path / "other",
    )
    before, after = (
        read_tensors(tmp_path / run / "model" / "weights.safetensors") for run in ("one", "other")
    )
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert same == {
        name for name in before if name.startswith("encoder.embedding.") or "wards.0." in name
    }
    with pytest.raises(CheckpointError, match=r"another encoder .*model.cell=gru there, lstm here"):
        train(tag_recipe(tmp_path, *changes, "model.cell=lstm"), run=tmp_path / "third")
    places = [Occurrence("saw", "", place, ("I", "saw", "a", "saw")) for place in (1, 3)]
    table, read = load_word_reader(tmp_path / "one").read(places)
    assert (table[0] == table[1]).all()
    assert (read[0] != read[1]).all()


@pytest.mark.parametrize(
    "change",
    ["training.compile=on", "training.recompute=blocks", "training.parallel={kind: sharded}"],
)
def test_what_a_recurrent_tagger_has_no_form_for(tmp_path: Path, change: str) -> None:
    with pytest.raises(SettingsError, match=r"model\.kind=recurrent is a recurrent model"):
        tag_recipe(tmp_path, "model={kind: recurrent}", change)


@pytest.mark.parametrize("change", ["compile=on", "recompute=blocks", "parallel={kind: sharded}"])
@pytest.mark.parametrize("task", ["language_modeling", "bidirectional_language", "tagging (elmo)"])
def test_the_same_is_refused_for_language_models_and_elmo(
    tmp_path: Path, task: str, change: str
) -> None:
    if task == "tagging (elmo)":
        recipe: AnyRecipe = tag_recipe(tmp_path, "model={kind: elmo}")
    else:
        recipe = recipe_of(task, tmp_path)
    changes = [f"training.{change}"]
    with pytest.raises(SettingsError, match=r"model\.kind=\w+ is a recurrent model"):
        train(recipe, run=tmp_path / "run", overrides=changes)
    assert not (tmp_path / "run").exists()
    with pytest.raises(SettingsError, match=r"model\.kind=\w+ is a recurrent model"):
        plan_recipe(recipe_from(recipe.model_dump(mode="json"), changes))


@pytest.mark.parametrize("kind", ["recurrent", "elmo"])
def test_shapes_that_follow_sentences_are_not_compiled(tmp_path: Path, kind: str) -> None:
    recipe = tag_recipe(tmp_path, f"model={{kind: {kind}}}")
    assert recipe.training.compile == recipe.training.cuda_graphs == "auto"
    assert recipe.training_as_run.compile == recipe.training_as_run.cuda_graphs == "off"
    encoder = tag_recipe(tmp_path)
    assert encoder.training_as_run is encoder.training
