import logging
import re
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from headwise.training import disk_space
from headwise.training.checkpoints import SPARE_BYTES, DiskFullError
from headwise.training.disk_space import (
    RunRoom,
    check_room,
    count_checkpoint_bytes,
    count_run_bytes,
    count_run_room,
)
from headwise.training.loop import train
from headwise.training.run_directory import RunDirectory
from tests.training.tiny import TinyBatches, TinyModule, TinyTrainable, tiny_settings

VARIANTS = [
    {},
    {"ema": 0.9},
    {"average": {"last": 3, "every": 2}},
    {"keep": {"last": 3}, "validate_every": 3},
]


def numbers_in(file: Path) -> int:
    """Bytes of a safetensors file after its header, which is large beside models as small as
    these.
    """
    content = file.read_bytes()
    return len(content) - 8 - int.from_bytes(content[:8], "little")


@pytest.mark.parametrize("changes", VARIANTS)
def test_a_run_never_takes_more_than_was_foreseen(tmp_path: Path, changes: dict) -> None:
    settings, largest = tiny_settings(steps=40, **changes), 0

    def watch(progress: object) -> None:
        nonlocal largest
        files = [
            file
            for folder in disk_space.FOLDERS
            for file in (tmp_path / folder).rglob("*.safetensors")
        ]
        largest = max(largest, sum(numbers_in(file) for file in files))

    with RunDirectory.open(tmp_path, recipe={}) as run:
        train(
            TinyTrainable(),
            TinyBatches(),
            settings,
            run,
            evaluate=lambda step: {"loss": 1 / step},
            progress=watch,
        )
    foreseen = count_run_bytes(TinyModule(), settings) - SPARE_BYTES
    assert 0.5 * foreseen < largest <= foreseen


def test_a_checkpoint_is_as_large_as_foreseen(tmp_path: Path) -> None:
    settings = tiny_settings(steps=5, ema=0.9)
    with RunDirectory.open(tmp_path, recipe={}) as run:
        train(TinyTrainable(), TinyBatches(), settings, run)
    written = sum(numbers_in(file) for file in tmp_path.rglob("checkpoints/*/*.safetensors"))
    steps = 4 * len(list(TinyModule().parameters()))
    assert written == count_checkpoint_bytes(TinyModule(), settings) + steps


def test_a_disk_that_is_too_small_is_told_before_the_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    usage, module, settings = namedtuple("usage", "total used free"), TinyModule(), tiny_settings()
    needed = count_run_bytes(module, settings)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1, 1, needed - 1))
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(DiskFullError, match="16 MiB free, this run would need") as caught,
    ):
        check_room(tmp_path, module, settings)
    assert "free 1 MiB there (old runs, caches) and start again" in str(caught.value)
    assert caught.value.exit_status == 1
    assert re.search(
        r"\(checkpoints 3 × 0\.0 MiB, .* weights \d × 0\.0 MiB; 16 MiB to spare\)",
        str(caught.value),
    )
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "old").write_bytes(bytes(7))
    check_room(tmp_path, module, settings)


def test_the_parts_that_are_named_add_up() -> None:
    module, settings = TinyModule(), tiny_settings(steps=40, average={"last": 3, "every": 2})
    room = count_run_room(module, settings)
    assert room.checkpoint == count_checkpoint_bytes(module, settings)
    assert (
        room.total
        == room.num_checkpoints * room.checkpoint + room.num_copies * room.weights + SPARE_BYTES
    )
    assert RunRoom(3, 5 << 20, 4, 1 << 20).describe()[0].startswith("checkpoints 3 × 5.0 MiB, ")
    assert "4 × 1.0 MiB；余量 16 MiB" in RunRoom(3, 5 << 20, 4, 1 << 20).describe()[1]
