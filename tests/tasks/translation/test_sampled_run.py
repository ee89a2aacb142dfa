"""Runs with scheduled sampling keep the promises of every run: resumed to the same bits, planned,
and shared by several processes."""

import json
from pathlib import Path

import pytest

from headwise.tasks.planner import plan_recipe
from headwise.tasks.run import train
from headwise.tasks.translation.recipe import TranslationRecipe
from tests.promises.recipes import weights_of_run
from tests.tasks.tiny import tiny_recipe
from tests.training.several import finish, start

RECURRENT = "model={kind: recurrent, dim: 16, layers: 1}"
OBJECTIVES = {
    "transformer": ("training.objective={kind: scheduled_sampling, prediction: {kind: sampled}}",),
    "recurrent": (
        "training.objective={kind: scheduled_sampling, mixing: {kind: sequential}}",
        RECURRENT,
    ),
}


def recipe_of(kind: str, *overrides: str) -> TranslationRecipe:
    gold = "training.objective.gold={kind: linear, start: 0.8, end: 0.2}"
    return tiny_recipe(*OBJECTIVES[kind], gold, "training.steps=3", *overrides)


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_a_stopped_run_resumes_to_the_same_bits(kind: str, tmp_path: Path) -> None:
    whole = recipe_of(kind, "training.checkpoint_every=1")
    train(whole, run=tmp_path / "whole")
    stopped = recipe_of(kind, "training.checkpoint_every=1", "training.time_limit=1e-9")
    train(stopped, run=tmp_path / "halves")
    train(whole, run=tmp_path / "halves", resume=True)
    assert weights_of_run(tmp_path / "halves") == weights_of_run(tmp_path / "whole")


def test_two_processes_train_one_model(tmp_path: Path) -> None:
    recipe = recipe_of("transformer", "training.log_every=1")

    def work() -> int:
        train(recipe, run=tmp_path / "two")
        return 0

    assert finish(start(tmp_path / "work", 2, work=work)) == [0, 0]
    assert json.loads((tmp_path / "two" / "model" / "results.json").read_text())["steps"] == 3


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_a_plan_traces_the_step(kind: str) -> None:
    found = plan_recipe(recipe_of(kind, "data.row_tokens=16"), device="h200").as_dict()
    assert found["memory"]["total"] > 0
