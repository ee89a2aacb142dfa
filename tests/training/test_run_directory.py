import logging
import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from headwise.errors import CheckpointError, DataError, UsageError
from headwise.storage import MANIFEST
from headwise.training import checkpoints
from headwise.training.log_file import read_log
from headwise.training.loop import train
from headwise.training.run_directory import RunDirectory, needed_steps
from headwise.training.run_lock import lock_is_held
from tests.training.tiny import TinyBatches, TinyTrainable, tiny_settings

RECIPE = {
    "model": {"dim": 11, "layers": [{"heads": 1}]},
    "training": {"steps": 20, "seed": 7, "time_limit": None},
}


def train_in(
    path: Path, *, resume: bool = False, batches: TinyBatches | None = None, **changes: object
) -> None:
    with RunDirectory.open(path, recipe=RECIPE, resume=resume) as run:
        train(TinyTrainable(), batches or TinyBatches(), tiny_settings(**changes), run)


def test_layout_and_rotation(tmp_path):
    train_in(tmp_path / "run", steps=17)
    names = sorted(child.name for child in (tmp_path / "run").iterdir())
    assert names == [".lock", "LATEST", "checkpoints", "log.jsonl", "recipe.yaml"]
    assert sorted(child.name for child in (tmp_path / "run/checkpoints").iterdir()) == [
        "step-15",
        "step-17",
    ]
    assert (tmp_path / "run/LATEST").read_text() == "step-17\n"
    files = {child.name for child in (tmp_path / "run/checkpoints/step-17").iterdir()}
    assert files == {
        "model.safetensors",
        "optimizer.safetensors",
        "recipe.yaml",
        "state.json",
        MANIFEST,
    }


def test_a_run_is_not_overwritten(tmp_path):
    train_in(tmp_path / "run", steps=2)
    with pytest.raises(UsageError, match="holds a run already; add --resume"):
        train_in(tmp_path / "run")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="files that are not a run"):
        train_in(tmp_path / "other", resume=True)


def test_a_recipe_of_the_users_own_is_not_taken_for_a_runs(tmp_path):
    (tmp_path / "recipe.yaml").write_text("# with much care\ntask: translation\n", encoding="utf-8")
    for resume in (False, True):
        with pytest.raises(UsageError, match=r"recipe.yaml was not written by a run|no checkpoint"):
            train_in(tmp_path, resume=resume)
        assert (tmp_path / "recipe.yaml").read_text(encoding="utf-8").startswith("# with much care")


def test_a_run_may_begin_beside_data_prepared_for_it(tmp_path):
    (tmp_path / "data").mkdir()
    with pytest.raises(UsageError, match="files that are not a run"):
        train_in(tmp_path)
    (tmp_path / "data" / "prepared.json").write_text("{}", encoding="utf-8")
    train_in(tmp_path, steps=2)
    assert (tmp_path / "data" / "prepared.json").exists()


def test_the_packages_of_a_recipe_are_no_change_of_it(tmp_path, caplog):
    recipe = {**RECIPE, "packages": []}
    RunDirectory.open(tmp_path, recipe=recipe).close()
    RunDirectory.open(tmp_path, recipe=recipe, resume=True).close()
    assert caplog.text == ""


def test_a_run_that_saved_nothing_may_begin_anew_with_any_recipe(tmp_path, caplog):
    RunDirectory.open(tmp_path, recipe=RECIPE).close()
    (tmp_path / "checkpoints" / "step-1.incomplete").mkdir(parents=True)
    RunDirectory.open(tmp_path, recipe=RECIPE, resume=True).close()
    assert caplog.text == ""
    for dim, resume in ((12, True), (13, False)):
        with caplog.at_level(logging.WARNING):
            RunDirectory.open(tmp_path, recipe={"model": {"dim": dim}}, resume=resume).close()
        assert "ended before anything was saved: it begins anew" in caplog.text
        assert f"dim: {dim}" in (tmp_path / "recipe.yaml").read_text(encoding="utf-8")
        caplog.clear()
    with RunDirectory.open(tmp_path, recipe=RECIPE) as run:
        run.log.write({"kind": "train", "step": 3})
    train_in(tmp_path, steps=2)
    assert [line["step"] for line in read_log(tmp_path / "log.jsonl")] == [2], (
        "the lost run's lines are gone"
    )


def test_resume_without_a_run_starts_one_and_says_so(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        train_in(tmp_path / "run", steps=2, resume=True)
    assert f"nothing to resume in {tmp_path / 'run'}: starting anew" in caplog.text
    assert (tmp_path / "run/LATEST").read_text() == "step-2\n"


def test_a_second_trainer_is_refused(tmp_path):
    assert not lock_is_held(tmp_path)
    with RunDirectory.open(tmp_path, recipe=RECIPE):
        assert lock_is_held(tmp_path)
        with pytest.raises(UsageError, match="another process is training"):
            RunDirectory.open(tmp_path, recipe=RECIPE, resume=True)
    assert not lock_is_held(tmp_path)
    RunDirectory.open(tmp_path, recipe=RECIPE, resume=True).close()


def test_leftovers_of_a_kill_are_removed(tmp_path):
    train_in(tmp_path / "run", steps=5)
    for name in ("step-9.incomplete", "step-3.retired"):
        (tmp_path / "run/checkpoints" / name).mkdir()
    (tmp_path / "run/LATEST.77.incomplete").write_text("", encoding="utf-8")
    train_in(tmp_path / "run", steps=6, resume=True)
    left = [
        child.name
        for child in (tmp_path / "run").rglob("*")
        if child.suffix in (".incomplete", ".retired")
    ]
    assert left == []


def test_a_file_of_the_users_own_is_not_taken_for_a_leftover(tmp_path):
    notes = tmp_path / "run" / "notes.incomplete"
    notes.mkdir(parents=True)
    (notes / "diary.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="files that are not a run"):
        train_in(tmp_path / "run")
    notes.rename(tmp_path / "aside")
    train_in(tmp_path / "run", steps=2)
    (tmp_path / "aside").rename(notes)
    train_in(tmp_path / "run", steps=3, resume=True)
    assert (notes / "diary.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("folder", ["checkpoints", "checkpoints/step-3", "best/mine", "model/old"])
def test_folders_named_as_those_of_a_run_are_not_a_run(tmp_path, folder, *, resume):
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "train.en").write_text("the only copy\n", encoding="utf-8")
    with pytest.raises(UsageError, match="holds files that are not a run; choose a new or empty"):
        train_in(tmp_path, resume=resume)
    (tmp_path / "recipe.yaml").write_text("# mine\n", encoding="utf-8")
    with pytest.raises(UsageError, match="was not written by a run and would be written over"):
        train_in(tmp_path)


def flip_a_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    "name",
    [
        "model.safetensors",
        "optimizer.safetensors",
        "ema.safetensors",
        "recipe.yaml",
        "state.json",
        MANIFEST,
    ],
)
@pytest.mark.parametrize("damage", [flip_a_bit, os.unlink, lambda file: os.truncate(file, 3)])
def test_damage_is_named_and_the_checkpoint_before_is_used(tmp_path, name, damage, caplog):
    train_in(tmp_path / "run", steps=10, ema=0.9)
    damage(tmp_path / "run/checkpoints/step-10" / name)
    with (
        caplog.at_level(logging.WARNING),
        RunDirectory.open(tmp_path / "run", recipe=RECIPE, resume=True) as run,
    ):
        found = run.load()
    assert found is not None
    assert found.state.step == 5
    # A flip inside the manifest may change the entry of any file: that file no longer matches, and
    # is named.
    assert "step-10/" in caplog.text
    assert name in caplog.text or name == MANIFEST
    assert "going on from step 5" in caplog.text
    assert (
        f"kept as {tmp_path / 'run/checkpoints/step-10.damaged'} and may be removed" in caplog.text
    )
    assert max(line["step"] for line in read_log(tmp_path / "run/log.jsonl")) <= 5
    assert (tmp_path / "run/checkpoints/step-10.damaged").is_dir()


def test_swapped_files_of_two_steps_are_noticed(tmp_path, caplog):
    train_in(tmp_path / "run", steps=10)
    checkpoint = tmp_path / "run/checkpoints"
    shutil.copy(checkpoint / "step-5/model.safetensors", checkpoint / "step-10/model.safetensors")
    with RunDirectory.open(tmp_path / "run", recipe=RECIPE, resume=True) as run:
        assert run.load().state.step == 5


def test_nothing_usable_is_an_error(tmp_path):
    train_in(tmp_path / "run", steps=10)
    for step in (5, 10):
        flip_a_bit(tmp_path / f"run/checkpoints/step-{step}/model.safetensors")
    with pytest.raises(CheckpointError, match="no checkpoint is usable") as caught:
        train_in(tmp_path / "run", steps=12, resume=True)
    assert str(caught.value).count("model.safetensors") == 2
    assert (
        "nothing else of it is whole; put back a copy of a checkpoint, or, to start anew on purpose"
        in str(caught.value)
    )
    assert sorted(p.name for p in (tmp_path / "run/checkpoints").iterdir()) == ["step-10", "step-5"]


def test_other_data_is_refused(tmp_path):
    train_in(tmp_path / "run", steps=5)
    with pytest.raises(DataError, match="fingerprint tiny-1 → tiny-2"):
        train_in(tmp_path / "run", steps=7, resume=True, batches=TinyBatches(seed=2))


@pytest.mark.parametrize(
    ("content", "held"), [(b"\xff\xfe", "\ufffd\ufffd"), (b"step-11\n", "step-11"), (b"", "")]
)
def test_a_damaged_pointer_is_named_and_written_again(tmp_path, content, held, caplog):
    train_in(tmp_path / "run", steps=10)
    (tmp_path / "run/LATEST").write_bytes(content)
    with (
        caplog.at_level(logging.WARNING),
        RunDirectory.open(tmp_path / "run", recipe=RECIPE, resume=True) as run,
    ):
        assert run.load().state.step == 10
    assert (
        f"LATEST: is damaged or out of date (it holds {held!r}, the name of no checkpoint here); "
        "going on from step 10" in (caplog.text)
    )
    assert (tmp_path / "run/LATEST").read_text() == "step-10\n"


def test_a_lost_pointer_costs_nothing(tmp_path, caplog):
    train_in(tmp_path / "run", steps=10)
    (tmp_path / "run/LATEST").unlink()
    with (
        caplog.at_level(logging.WARNING),
        RunDirectory.open(tmp_path / "run", recipe=RECIPE, resume=True) as run,
    ):
        assert run.load().state.step == 10
    assert caplog.text == ""
    assert (tmp_path / "run/LATEST").read_text() == "step-10\n"


def test_a_model_that_was_moved_aside_is_put_back(tmp_path):
    """A kill between the two renames of a system that cannot exchange two names."""
    train_in(tmp_path / "run", steps=5)
    (tmp_path / "run/model.replaced").mkdir()
    (tmp_path / "run/model.incomplete").mkdir()
    with RunDirectory.open(tmp_path / "run", recipe=RECIPE, resume=True):
        assert sorted(path.name for path in (tmp_path / "run").glob("model*")) == ["model"]


def test_a_full_disk_does_not_end_training(tmp_path, monkeypatch, caplog):
    usage = namedtuple("usage", "total used free")
    calls = []

    def disk_usage(path):
        calls.append(path)
        return usage(1, 1, 10**12 if len(calls) == 1 else 1 << 20)

    monkeypatch.setattr(checkpoints.shutil, "disk_usage", disk_usage)
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(CheckpointError, match="1 MiB free, 17 MiB are needed"),
    ):
        # Only the last save, after which there is no other, insists.
        train_in(tmp_path / "run", steps=20)
    assert caplog.text.count("earlier checkpoints are untouched") == 3
    assert [p.name for p in (tmp_path / "run/checkpoints").iterdir()] == ["step-5"]
    assert max(line["step"] for line in read_log(tmp_path / "run/log.jsonl")) == 20
    monkeypatch.undo()
    train_in(tmp_path / "run", steps=20, resume=True)
    assert (tmp_path / "run/LATEST").read_text() == "step-20\n"


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), checkpoints.SafetensorError("(os error 28)")]
)
def test_a_disk_that_fills_while_writing(tmp_path, monkeypatch, error):
    def write(path, tensors):
        path.write_bytes(b"half")
        raise error

    monkeypatch.setattr(checkpoints, "write_tensors", write)
    with pytest.raises(checkpoints.DiskFullError, match="free some space there"):
        train_in(tmp_path / "run", steps=5)
    assert list((tmp_path / "run/checkpoints").iterdir()) == []


def test_needed_steps():
    assert needed_steps([1, 2, 3, 4, 5, 6, 7], checkpoints=[3, 6], last=2) == {2, 3, 5, 6, 7}
    assert needed_steps([4, 9], checkpoints=[5, 10], last=1) == {4, 9}
    assert needed_steps([4, 9], checkpoints=[], last=1) == {4, 9}
    assert needed_steps([4, 9], checkpoints=[10], last=0) == set()


def test_a_run_that_lost_its_checkpoints_is_not_begun_anew(tmp_path):
    run = tmp_path / "run"
    train_in(run, steps=10)
    shutil.rmtree(run / "checkpoints")
    before = {child.name: child.read_bytes() for child in run.iterdir() if child.is_file()}
    with pytest.raises(
        CheckpointError, match=r"LATEST names step 10, but checkpoints/ is missing or empty"
    ) as caught:
        train_in(run, steps=12, resume=True)
    assert caught.value.exit_status == 3
    assert f"mv {run} {run}-old" in str(caught.value)
    assert "LATEST 指向第 10 步" in caught.value.zh
    assert {child.name: child.read_bytes() for child in run.iterdir() if child.is_file()} == before
    (run / "LATEST").unlink()
    (run / "model").mkdir()
    (run / "model" / "weights.safetensors").touch()
    with pytest.raises(
        CheckpointError, match=r"a model was trained here for 10 steps, but checkpoints/ is missing"
    ):
        train_in(run, steps=12, resume=True)
