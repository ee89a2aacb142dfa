"""R5 and R6: no file is trusted. A flipped bit, a lost or swapped file is named with status 3, and
the checkpoint before is used."""

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwise.cli.main import main
from headwise.errors import CheckpointError
from headwise.randomness import numpy_generator
from headwise.storage import MANIFEST, sha256_of
from headwise.tasks.run import train
from headwise.training.run_directory import RunDirectory
from headwise.training.run_recipe import read_run_recipe
from tests.survival.conftest import LENGTH
from tests.survival.damage import (
    DAMAGES,
    Damage,
    draw_flips,
    flip_bit,
    may_change_nothing,
    proved_files,
    swap_between_steps,
)
from tests.tasks.tiny import tiny_recipe

NEWEST, BEFORE = 12, 8


def ask_doctor(run: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, Any]]]:
    capsys.readouterr()
    status = main(["doctor", str(run), "--json"])
    return status, [
        finding for finding in json.loads(capsys.readouterr().out) if finding["state"] == "damaged"
    ]


def check_flips(run: Path, count: int, capsys: pytest.CaptureFixture[str]) -> tuple[int, int]:
    """Each flip alone: the doctor's status, the artefact and the file it names; the loader of a
    bundle refuses as well."""
    files = proved_files(run)
    assert ask_doctor(run, capsys) == (0, [])
    for file, bit in draw_flips(files, count, numpy_generator("flips", count)):
        flip_bit(file, bit)
        status, damaged = ask_doctor(run, capsys)
        assert status == 3, (file, bit)
        assert len(damaged) == 1, (file, bit)
        assert file.is_relative_to(damaged[0]["topic"])
        assert str(file) in damaged[0]["text"], (file, bit, damaged)
        if file.is_relative_to(run / "model"):
            assert main(["translate", "--model", str(run / "model"), str(run / "recipe.yaml")]) == 3
        flip_bit(file, bit)
    assert ask_doctor(run, capsys) == (0, [])
    return count, len(files)


def test_one_flip_in_every_file(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check_flips(run, len(proved_files(run)), capsys)


@pytest.mark.prove
def test_a_thousand_flips(
    run: Path, capsys: pytest.CaptureFixture[str], record: Callable[..., None]
) -> None:
    count, num_files = check_flips(run, 1000, capsys)
    record(
        "R5",
        f"{count:,} single-bit flips over the {num_files} files of checkpoints, weights, "
        "tokenizers, token stores and bundle",
        "1,000 detected, the file named, status 3",
    )


def check_damage(
    run: Path, damage: Damage, name: str, turn: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A file of the newest checkpoint: the one before is loaded and the damaged file named."""
    file = run / f"checkpoints/step-{NEWEST}" / name
    damage(file, numpy_generator(damage.__name__, name, turn))
    caplog.clear()
    recipe = read_run_recipe(run / "recipe.yaml")
    with (
        caplog.at_level(logging.WARNING),
        RunDirectory.open(run, recipe=recipe, resume=True) as opened,
    ):
        found = opened.load()
    assert found is not None
    if may_change_nothing(damage, file):
        assert found.state.step in (BEFORE, NEWEST)
        return
    assert found.state.step == BEFORE, (damage.__name__, name)
    assert f"step-{NEWEST}/" in caplog.text
    assert name in caplog.text or name == MANIFEST
    assert f"going on from step {BEFORE}" in caplog.text


def restore(finished: Path, run: Path) -> None:
    shutil.rmtree(run)
    shutil.copytree(finished, run, symlinks=True)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_the_checkpoint_before_is_used(
    damage: Damage, run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    check_damage(run, damage, "optimizer.safetensors", 0, caplog)


def test_after_damage_the_end_is_the_same(
    run: Path, finished_run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    check_damage(run, swap_between_steps, "model.safetensors", 0, caplog)
    train(tiny_recipe(*LENGTH, "data.test=null"), run=run, resume=True)
    weights = "model/weights.safetensors"
    assert sha256_of(run / weights) == sha256_of(finished_run / weights), (
        "the same end, four steps later"
    )


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_bundle_is_refused(
    damage: Damage, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = run / "model/weights.safetensors"
    (run / "other").mkdir()
    (run / "other/weights.safetensors").write_bytes(bytes(file.stat().st_size))
    damage(file, numpy_generator(damage.__name__))
    assert main(["translate", "--model", str(run / "model"), str(run / "recipe.yaml")]) == 3
    said = capsys.readouterr().err
    assert "weights.safetensors" in said
    assert "Traceback" not in said


@pytest.mark.prove
def test_every_damage_to_every_file_ten_times(
    run: Path, finished_run: Path, caplog: pytest.LogCaptureFixture, record: Callable[..., None]
) -> None:
    names = sorted(path.name for path in (run / f"checkpoints/step-{NEWEST}").iterdir())
    for damage in DAMAGES:
        for name in names:
            for turn in range(10):
                check_damage(run, damage, name, turn, caplog)
                restore(finished_run, run)
    count = 10 * len(DAMAGES) * len(names)
    kinds = ", ".join(damage.__name__.replace("_", " ") for damage in DAMAGES)
    record(
        "R6",
        f"{count} damages ({kinds}) to the files of the newest checkpoint",
        "named; the checkpoint before used",
    )


def test_damaged_data_is_named_and_made_again(
    run: Path, caplog: pytest.LogCaptureFixture, finished_run: Path
) -> None:
    flip_bit(run / "data/train/source.tokens", 77)
    with caplog.at_level(logging.WARNING):
        train(tiny_recipe(*LENGTH, "data.test=null"), run=run, resume=True)
    assert "data/train/source.tokens: is damaged" in caplog.text
    assert "it is made again from the corpora" in caplog.text
    assert sha256_of(run / "data/train/MANIFEST.json") == sha256_of(
        finished_run / "data/train/MANIFEST.json"
    )


def test_when_no_checkpoint_is_left_the_status_is_three(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in (BEFORE, NEWEST):
        flip_bit(run / f"checkpoints/step-{step}/model.safetensors", 999)
    assert main(["train", str(run / "recipe.yaml"), "--run", str(run), "--resume"]) == 3
    said = capsys.readouterr().err
    assert "no checkpoint is usable" in said
    assert said.count("model.safetensors: is damaged") == 2
    with pytest.raises(CheckpointError, match="no checkpoint is usable"):
        train(tiny_recipe(*LENGTH, "data.test=null"), run=run, resume=True)
