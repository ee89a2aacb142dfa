"""R6, the disk: one that is too small, that fills up, and that may only be read, each a real file
system of its own."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.survival.conftest import ShortForms


@pytest.fixture(name="scenes")
def _scenes(short_forms: ShortForms) -> dict[str, dict[str, Any]]:
    if short_forms.small_disk is None:
        pytest.skip(
            "this system lets no user mount in a namespace; full disks are imitated in "
            "tests/training instead"
        )
    return short_forms.small_disk.answer()


def test_a_disk_that_is_too_small_is_told_before_the_first_step(
    scenes: dict[str, dict[str, Any]],
) -> None:
    answer = scenes["too small from the start"]
    assert answer["status"] == 1
    assert not answer["steps"]
    assert "11 MiB free, this run would need up to 17 MiB more" in answer["said"]
    assert "free 5 MiB there (old runs, caches) and start again" in answer["said"]


def test_a_disk_that_is_full_for_a_while_costs_nothing(scenes: dict[str, dict[str, Any]]) -> None:
    answer = scenes["full for a while"]
    assert answer["status"] == 0
    assert answer["same"]
    assert (
        "0 MiB free, 17 MiB are needed to save; earlier checkpoints are untouched; free some space"
        in answer["said"]
    )


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
        "told before the first step; trained on; older checkpoint whole, resumed to the same "
        "weights; told, status 2",
    )


def test_a_disk_that_may_only_be_read(scenes: dict[str, dict[str, Any]]) -> None:
    for words in ("train", "resume"):
        assert scenes[f"read-only: {words}"]["status"] == 2
        assert (
            "the file system is read-only; use a place you may write to"
            in scenes[f"read-only: {words}"]["said"]
        )
    assert scenes["read-only: doctor"]["status"] == 0
    assert scenes["read-only: translate"]["status"] == 0
