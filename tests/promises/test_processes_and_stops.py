"""What a run promises about several processes, signals, and runs that are not finished."""

import contextlib
import json
import shutil
from pathlib import Path

import pytest

from headwise.errors import CheckpointError, TrainingStopped, UsageError
from headwise.inspecting.bundle_summary import summarize_bundle
from headwise.tasks.checkpoint_bundle import write_checkpoint_bundle
from headwise.tasks.planner import plan_recipe
from headwise.tasks.run import check_run, train
from headwise.tasks.table import find_task
from headwise.tasks.task import training_of
from headwise.training.process_group import OneProcess
from tests.promises.recipes import (
    COUNTED,
    STEPPED,
    TORCHRUN,
    make_recipe,
    weights_of_run,
)
from tests.training.several import finish, start


@pytest.mark.parametrize("name", STEPPED)
def test_two_processes_train_one_model(name: str, tmp_path: Path) -> None:
    """As torchrun starts them; their log is that of one process, apart from rounding."""
    recipe = make_recipe(name, tmp_path, steps=2, log_every=1)

    def work() -> int:
        train(recipe, run=tmp_path / "two")
        return 0

    assert finish(start(tmp_path / "work", 2, work=work)) == [0, 0]
    train(recipe, run=tmp_path / "one")
    one, two = (
        json.loads((tmp_path / run / "log.jsonl").read_text().splitlines()[0])
        for run in ("one", "two")
    )
    assert two["target_tokens"] == one["target_tokens"]
    assert json.loads((tmp_path / "two" / "model" / "results.json").read_text())["steps"] == 2


@pytest.mark.parametrize("name", ["word_vectors", COUNTED])
def test_counting_by_two_processes_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in TORCHRUN.items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(UsageError, match="is learnt in a single pass by one process"):
        train(make_recipe(name, tmp_path), run=tmp_path / "run")


@pytest.mark.parametrize("name", STEPPED)
def test_a_signal_saves_and_ends(name: str, tmp_path: Path) -> None:
    recipe = make_recipe(name, tmp_path, steps=100_000)
    from tests.promises.stopping import StopAtStep

    with pytest.raises(TrainingStopped):
        train(recipe, run=tmp_path / "run", events=StopAtStep(3))
    assert list((tmp_path / "run" / "checkpoints").glob("step-*"))


@pytest.mark.parametrize("name", STEPPED)
def test_an_unfinished_run_is_used_by_its_checkpoint(name: str, tmp_path: Path) -> None:
    """The weights of the last update, beside everything that the model needs."""
    schedule = {"kind": "constant", "peak": 0.01}
    recipe = make_recipe(name, tmp_path, validate_every=None, schedule=schedule)
    train(recipe, run=tmp_path / "run")
    finished = weights_of_run(tmp_path / "run")
    bundle = tmp_path / "run" / "model"
    shutil.move(bundle, tmp_path / "finished")
    step, of = write_checkpoint_bundle(tmp_path / "run", "last", tmp_path / "early" / "model")
    assert (step, of) == (training_of(recipe).steps, recipe)
    assert summarize_bundle(tmp_path / "early" / "model")
    if json.loads((tmp_path / "finished" / "results.json").read_text())["weights"] == "last":
        assert weights_of_run(tmp_path / "early") == finished
    with pytest.raises(CheckpointError, match="training is not finished"):
        find_task(recipe).load(tmp_path / "run")


@pytest.mark.parametrize("name", ["word_vectors", COUNTED])
def test_a_model_without_checkpoints_says_so(name: str, tmp_path: Path) -> None:
    train(make_recipe(name, tmp_path), run=tmp_path / "run")
    with pytest.raises(UsageError, match="made in one pass, without checkpoints"):
        write_checkpoint_bundle(tmp_path / "run", "last", tmp_path / "early")


class FirstOfFive(OneProcess):
    """What a training asks before data are read."""

    count = 5


@pytest.mark.parametrize("name", STEPPED)
def test_processes_that_cannot_share_an_update_are_refused_before_data_are_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one sentence by a training, by --check and by a plan."""
    recipe = make_recipe(name, tmp_path, batch_tokens=1, accumulation=3)

    def prepare(*_: object) -> None:
        raise AssertionError("data are read")

    monkeypatch.setattr(type(find_task(recipe)), "prepare", prepare)
    monkeypatch.setattr(
        "headwise.tasks.run.join_processes", lambda: contextlib.nullcontext(FirstOfFive())
    )
    monkeypatch.setattr("headwise.tasks.run.world_size", lambda: 5)
    with pytest.raises(UsageError, match="cannot be shared by 5 processes") as refused:
        train(recipe, run=tmp_path / "a" / "run")
    assert not (tmp_path / "a").exists()
    with pytest.raises(UsageError) as checked:
        check_run(recipe, directory=tmp_path / "scratch")
    assert str(checked.value) == str(refused.value)
    plan = plan_recipe(recipe, device="h200", gpus=5)
    assert plan.as_dict()["refusal"] == str(refused.value)
    assert "training." in str(refused.value)
