"""R10: NaN, infinity and a loss that leaps. A bad update is skipped, too many end the training, and
no checkpoint holds a NaN."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from headwise.errors import HeadwiseError
from headwise.training.loop import train
from headwise.training.losses import LossSums
from headwise.training.progress import TrainingResult
from headwise.training.run_directory import RunDirectory
from tests.training.runs import equal, lines_of, weights_after
from tests.training.tiny import TinyBatch, TinyBatches, TinyTrainable, tiny_settings

STEPS = 30


class Spoilt(TinyTrainable):
    """The loss of chosen updates is multiplied by a factor: NaN, infinity, a million."""

    def __init__(self, factor: float, updates: range) -> None:
        super().__init__()
        self.factor, self.updates, self.count = factor, updates, 0

    def loss(self, batch: TinyBatch) -> LossSums:
        self.count += 1
        sums = super().loss(batch)
        return sums._replace(loss=sums.loss * self.factor) if self.count in self.updates else sums


def train_spoilt(path: Path, trainable: TinyTrainable) -> TrainingResult:
    with RunDirectory.open(path, recipe={}) as run:
        return train(trainable, TinyBatches(), tiny_settings(steps=STEPS, max_skipped=4), run)


def checkpoint_is_finite(path: Path) -> bool:
    with RunDirectory.open(path, recipe={}, resume=True) as run:
        found = run.load()
    assert found is not None
    return all(
        tensor.isfinite().all()
        for part in (found.weights, found.optimizer)
        for tensor in part.values()
    )


@pytest.mark.parametrize("factor", [math.nan, math.inf, -math.inf])
def test_a_bad_update_is_skipped_as_if_it_had_not_been(tmp_path: Path, factor: float) -> None:
    trainable = Spoilt(factor, range(12, 15))
    result = train_spoilt(tmp_path, trainable)
    assert result.skipped == 3
    assert [line["skipped"] for line in lines_of(tmp_path)] == [0, 0, 0, 1, 2, 0, 0, 0, 0, 0]
    assert all(tensor.isfinite().all() for tensor in weights_after(trainable).values())
    assert checkpoint_is_finite(tmp_path)
    plain = TinyTrainable()
    train_spoilt(tmp_path / "plain", plain)
    assert not equal(weights_after(trainable), weights_after(plain)), "three updates less"


@pytest.mark.parametrize("factor", [math.nan, math.inf])
def test_many_in_a_row_end_the_training_with_a_good_checkpoint(
    tmp_path: Path, factor: float, record: Callable[..., None]
) -> None:
    with pytest.raises(
        HeadwiseError, match=r"not finite in 4 updates in a row .up to step 15.*checkpoint is good"
    ):
        train_spoilt(tmp_path, Spoilt(factor, range(12, 1000)))
    assert (tmp_path / "LATEST").read_text(encoding="utf-8") == "step-10\n"
    assert checkpoint_is_finite(tmp_path)
    with RunDirectory.open(tmp_path, recipe={}, resume=True) as run:
        result = train(TinyTrainable(), TinyBatches(), tiny_settings(steps=STEPS), run)
    assert result.step == STEPS
    assert result.skipped == 0
    record(
        "R10",
        "NaN and infinity in 3 updates, in all from one on; a loss 10⁶ times too high",
        "skipped; ended after `max_skipped` with a finite checkpoint that resumes; clipped",
    )


def test_a_leap_of_the_loss_moves_the_weights_no_further_than_any_update(tmp_path: Path) -> None:
    """The gradient is clipped, and Adam divides by its size: a loss a million times too high is one
    odd step."""
    trainable = Spoilt(1e6, range(12, 13))
    result = train_spoilt(tmp_path / "spoilt", trainable)
    assert result.skipped == 0
    plain = TinyTrainable()
    train_spoilt(tmp_path / "plain", plain)
    for left, right in zip(
        weights_after(trainable).values(), weights_after(plain).values(), strict=True
    ):
        torch.testing.assert_close(left, right, atol=0.1, rtol=0)
    final = [lines_of(tmp_path / name)[-1]["loss"] for name in ("spoilt", "plain")]
    assert abs(final[0] - final[1]) < 0.2
