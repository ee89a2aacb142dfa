"""R6, the disk: one that is too small, that fills up, and that may only be read, each a real file system of its own."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
OWN_MOUNTS = ("unshare", "--mount", "--map-root-user")


def may_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*OWN_MOUNTS, "true"], capture_output=True).returncode == 0


@pytest.fixture(name="scenes", scope="module")
def _scenes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    if not may_mount():
        pytest.skip("this system lets no user mount in a namespace; full disks are imitated in tests/training instead")
    done = subprocess.run(
        [*OWN_MOUNTS, sys.executable, "-m", "tests.survival.small_disk", str(tmp_path_factory.mktemp("disks"))],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_disk_that_is_too_small_is_told_before_the_first_step(scenes: dict[str, dict[str, Any]]) -> None:
    answer = scenes["too small from the start"]
    assert answer["status"] == 1
    assert not answer["steps"]
    assert "11 MiB free, this run would need up to 17 MiB more" in answer["said"]
    assert "free 5 MiB there (old runs, caches) and go on with --resume" in answer["said"]


def test_a_disk_that_is_full_for_a_while_costs_nothing(scenes: dict[str, dict[str, Any]]) -> None:
    answer = scenes["full for a while"]
    assert answer["status"] == 0
    assert answer["same"]
    assert "0 MiB free, 17 MiB are needed to save; earlier checkpoints are untouched; free some space" in answer["said"]


def test_a_disk_that_stays_full_leaves_the_older_checkpoint(
    scenes: dict[str, dict[str, Any]], record: Callable[..., None]
) -> None:
    answer = scenes["full to the end"]
    assert answer["status"] == 1
    assert answer["checkpoints"] == ["step-4"]
    assert answer["said"].count("headwise: note: ") == 3, "it went on, and said so at each save"
    assert scenes["doctor"]["status"] == 0
    assert scenes["resumed"]["status"] == 0
    assert scenes["resumed"]["same"]
    record(
        "R6",
        "disks (tmpfs) too small for the run, full for a while, full to the end, read-only",
        "told before the first step; trained on; older checkpoint whole, resumed to the same weights; told, status 2",
    )


def test_a_disk_that_may_only_be_read(scenes: dict[str, dict[str, Any]]) -> None:
    for words in ("train", "resume"):
        assert scenes[f"read-only: {words}"]["status"] == 2
        assert "the file system is read-only; use a place you may write to" in scenes[f"read-only: {words}"]["said"]
    assert scenes["read-only: doctor"]["status"] == 0
    assert scenes["read-only: translate"]["status"] == 0
