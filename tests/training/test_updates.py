import math

import pytest
import torch

from headwise.training.compilation import Compilation
from headwise.training.losses import LossSums
from headwise.training.updates import Updater
from headwise.weights import weights_of
from tests.training.tiny import TinyBatch, TinyBatches, TinyTrainable, tiny_settings

CPU = torch.device("cpu")


def make_updater(trainable: TinyTrainable, **changes: object) -> Updater:
    return Updater(
        trainable, tiny_settings(**changes), device=CPU, compilation=Compilation(enabled=False)
    )


def test_accumulated_batches_equal_the_large_batch():
    """In float64, so that only a wrong formula could differ; batches have different numbers of
    target tokens.
    """
    parts = [TinyBatches().batch(index) for index in range(3)]
    whole = TinyBatch(
        torch.cat([part.words for part in parts]), torch.cat([part.targets for part in parts])
    )
    results = []
    for batches in (parts, [whole]):
        trainable = TinyTrainable(dropout=0.0)
        trainable.module.double()
        updater = make_updater(trainable, clip=0.1)
        for step in (1, 2):
            updater.update(batches, step=step, learning_rate=0.01)
        results.append((weights_of(trainable.module), updater.sums.read()))
    (apart, apart_sums), (together, together_sums) = results
    for name, tensor in together.items():
        torch.testing.assert_close(apart[name], tensor, rtol=1e-12, atol=1e-14)
    assert apart_sums.loss == pytest.approx(together_sums.loss, rel=1e-12)
    assert apart_sums.gradient_norm == pytest.approx(together_sums.gradient_norm, rel=1e-12)
    assert apart_sums.target_tokens == 2 * sum(int((part.targets != 0).sum()) for part in parts)


class Spoiled(TinyTrainable):
    """Gives a loss or a gradient that is not finite at the steps listed."""

    def __init__(self, loss_at: set[int], gradient_at: set[int]) -> None:
        super().__init__()
        self.loss_at, self.gradient_at, self.calls = loss_at, gradient_at, 0

    def loss(self, batch: TinyBatch) -> LossSums:
        self.calls += 1
        sums = super().loss(batch)
        loss = sums.loss * math.nan if self.calls in self.loss_at else sums.loss
        if self.calls in self.gradient_at:
            zero = self.module.inner.bias.sum() - self.module.inner.bias.sum().detach()
            loss = loss + torch.sqrt(zero)  # value 0, gradient infinite
        return sums._replace(loss=loss)


def test_a_spoiled_update_changes_nothing_and_is_counted():
    trainable = Spoiled(loss_at={2}, gradient_at={3})
    updater = make_updater(trainable)
    batches = TinyBatches()
    updater.update([batches.batch(0)], step=1, learning_rate=0.01)
    before = {name: tensor.clone() for name, tensor in weights_of(trainable.module).items()}
    good = updater.sums.read()
    for step in (2, 3):
        updater.update([batches.batch(step)], step=step, learning_rate=0.01)
    for name, tensor in weights_of(trainable.module).items():
        assert torch.equal(tensor, before[name])
    window = updater.sums.read()
    assert (window.skipped, window.skipped_in_a_row, window.total_skipped) == (2, 2, 2)
    assert (window.loss, window.target_tokens, window.updates) == (good.loss, good.target_tokens, 1)
    updater.update([batches.batch(4)], step=4, learning_rate=0.01)
    assert updater.sums.read().skipped_in_a_row == 0
    assert not all(
        torch.equal(tensor, before[name]) for name, tensor in weights_of(trainable.module).items()
    )


def test_a_new_window_keeps_the_totals():
    updater = make_updater(TinyTrainable())
    updater.update([TinyBatches().batch(0)], step=1, learning_rate=0.01)
    first = updater.sums.read()
    updater.sums.start_window()
    second = updater.sums.read()
    assert second.loss == second.target_tokens == second.updates == 0
    assert second.total_tokens == first.total_tokens > 0
    assert second.mean_loss is None


def test_parts_with_random_numbers_of_their_own_are_told_the_step():
    class Part(torch.nn.Module):
        def before_step(self, step: int, *, key: str) -> None:
            told.append((step, key))

    told: list[tuple[int, str]] = []
    trainable = TinyTrainable()
    trainable.module.add_module("part", Part())
    updater = make_updater(trainable, seed=5)
    for step in (4, 5):
        updater.update([TinyBatches().batch(step)], step=step, learning_rate=0.01)
    assert told == [(4, "5/part"), (5, "5/part")]
