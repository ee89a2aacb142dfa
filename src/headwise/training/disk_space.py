"""Checks that the disk can hold a run, before its first step.

    checkpoint = weights + 2 moments (+ moving average)
    run        ≤ (kept + 1) checkpoints + best and averaged weights
                 + the finished model and a new one beside it

`kept` is the number of checkpoints that the run keeps. A task of a single pass (n-grams, word
vectors) has no checkpoints, only the finished model and a new one beside it. Files that the run has
already written count as available space, because new files replace them. Tested against: the
largest size a run ever had, on a disk of exactly that size.
"""

import math
import shutil
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from headwise.training.checkpoints import SPARE_BYTES, DiskFullError, count_bytes
from headwise.training.choices import TrainingSettings
from headwise.weights import weights_of

FOLDERS = ("checkpoints", "best", "snapshots", "model")


def count_checkpoint_bytes(module: nn.Module, settings: TrainingSettings) -> int:
    weights = count_bytes(weights_of(module))
    moments = 2 * sum(
        one.numel() * one.element_size() for one in module.parameters() if one.requires_grad
    )
    return weights + moments + (0 if settings.ema is None else weights)


@dataclass(frozen=True)
class RunRoom:
    """The most space a run needs while it trains, without data and log."""

    num_checkpoints: int
    checkpoint: int
    num_copies: int
    weights: int

    @property
    def total(self) -> int:
        return self.num_checkpoints * self.checkpoint + self.num_copies * self.weights + SPARE_BYTES

    def describe(self) -> tuple[str, str]:
        """The parts and the sum, in English and Chinese."""
        checkpoints = f"{self.num_checkpoints} × {_tenths(self.checkpoint)}"
        weights, spare = f"{self.num_copies} × {_tenths(self.weights)}", _mebibytes(SPARE_BYTES)
        if not self.num_checkpoints:
            return (
                f"the tables of the model {weights}; {spare} to spare",
                f"模型的表 {weights}；余量 {spare}",
            )
        return (
            f"checkpoints {checkpoints}, one of them while the next is written; best, averaged "
            f"and final weights {weights}; {spare} to spare",
            f"检查点 {checkpoints}（含写入下一个时的一份）；最佳、平均与最终权重 {weights}；余量 "
            f"{spare}",
        )


def count_run_room(module: nn.Module, settings: TrainingSettings) -> RunRoom:
    weights, kept = count_bytes(weights_of(module)), settings.keep.last
    saves = min(kept + 1, math.ceil(settings.steps / settings.checkpoint_every) + 1)
    # Of the best weights, one for each checkpoint.
    copies = kept + 2 if settings.validate_every is not None else 1
    if settings.average is not None:
        between = math.ceil(settings.checkpoint_every / settings.average.every)
        copies += min(
            settings.average.last + (kept + 1) * between,
            settings.steps // settings.average.every + 1,
        )
    return RunRoom(saves, count_checkpoint_bytes(module, settings), copies + 2, weights)


def count_run_bytes(module: nn.Module, settings: TrainingSettings) -> int:
    return count_run_room(module, settings).total


def check_room(run: Path, module: nn.Module, settings: TrainingSettings) -> None:
    """Raise if the checkpoints and weights of a training would fill the disk."""
    _check_free(
        run,
        count_run_room(module, settings),
        (
            ", or lower training.keep.last or training.average.last",
            "，或减小 training.keep.last、training.average.last",
        ),
    )


def check_single_pass_room(run: Path, num_bytes: int) -> None:
    """Raise if a model of so many bytes that has no checkpoints would fill the disk."""
    _check_free(run, RunRoom(0, 0, 2, num_bytes), ("", ""))


def _check_free(run: Path, room: RunRoom, remedy: tuple[str, str]) -> None:
    there = sum(
        file.stat().st_size
        for folder in FOLDERS
        for file in (run / folder).rglob("*")
        if file.is_file()
    )
    disk = next(path for path in (run, *run.absolute().parents) if path.exists())
    free = shutil.disk_usage(disk).free
    if free + there >= room.total:
        return
    needed, parts = room.total - there, room.describe()
    written, again = ("", ""), ("start again", "重新开始")
    if there:
        written = f", less {_mebibytes(there)} that are there", f"，减去已有的 {_mebibytes(there)}"
        again = "go on with --resume", "用 --resume 继续"
    raise DiskFullError(
        f"has {free >> 20:,} MiB free, this run would need up to {_mebibytes(needed)} more "
        f"({parts[0]}{written[0]}); free {_mebibytes(needed - free)} there (old runs, caches) and "
        f"{again[0]}, give --run on another disk{remedy[0]}",
        f"剩余 {free >> 20:,} MiB，本次运行最多还需 {_mebibytes(needed)}"
        f"（{parts[1]}{written[1]}）；请在该处释放 {_mebibytes(needed - free)}"
        f"（旧的运行、缓存）后{again[1]}，用 --run 换到别的磁盘{remedy[1]}",
        file=run,
    )


def _mebibytes(count: int) -> str:
    return f"{-(-count >> 20):,} MiB"


def _tenths(count: int) -> str:
    return f"{count / (1 << 20):,.1f} MiB"
