from pathlib import Path

import pytest

from headwise.errors import (
    CheckpointError,
    DataError,
    HeadwiseError,
    MaskError,
    SettingsError,
    TrainingStopped,
    UsageError,
)
from headwise.language import use_language


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (HeadwiseError, 1),
        (UsageError, 2),
        (SettingsError, 2),
        (MaskError, 2),
        (DataError, 3),
        (CheckpointError, 3),
    ],
)
def test_whose_mistake_it_was_decides_the_exit_status(
    kind: type[HeadwiseError], status: int
) -> None:
    assert kind("en", "zh").exit_status == status


def test_a_saved_stop_exits_like_the_signal_would() -> None:
    assert TrainingStopped("en", "zh", signal_number=15).exit_status == 143


def test_a_saved_stop_says_how_to_go_on() -> None:
    saved, lost = (
        TrainingStopped("stopped", "停止", signal_number=2, saved=saved) for saved in (True, False)
    )
    assert str(saved) == "stopped; saved; go on with resume=True"
    assert (
        saved.go_on_with("headwise train r --resume")
        == "stopped; saved; go on with: headwise train r --resume"
    )
    assert (str(lost), lost.go_on_with("x")) == ("stopped; not saved", "stopped; not saved")


def test_the_place_stands_before_the_message() -> None:
    assert str(DataError("is empty", "为空")) == "is empty"
    assert str(DataError("is empty", "为空", file=Path("a/b.en"))) == "a/b.en: is empty"
    assert str(DataError("is empty", "为空", file="a/b.en", line=7)) == "a/b.en:7: is empty"


def test_the_language_is_that_of_the_moment_of_reading() -> None:
    error = DataError("is empty", "为空", file="x")
    use_language("zh")
    assert str(error) == "x: 为空"


def test_mistakes_can_be_caught_as_plain_value_errors() -> None:
    with pytest.raises(ValueError, match="what was given"):
        raise UsageError("what was given", "给出的")
