import pytest
import torch

from headwise.blocks.dropout import NUM_LEVELS, drop, hashed_bytes


def test_share_of_zeros_mean_and_scale():
    torch.manual_seed(1)
    x = torch.full((1009, 997), 3.0, dtype=torch.float64)
    y = drop(x, 0.3, training=True)
    rate = round(0.3 * NUM_LEVELS) / NUM_LEVELS
    assert (y == 0).double().mean().item() == pytest.approx(rate, abs=2e-3)
    assert y.mean().item() == pytest.approx(3.0, abs=1e-2)
    assert set(y.unique().tolist()) == {0.0, 3.0 / (1 - rate)}


def test_nothing_is_dropped_outside_training_or_at_rate_zero():
    x = torch.randn(7, 11)
    assert drop(x, 0.5, training=False) is x
    assert drop(x, 0.0, training=True) is x


def test_the_highest_rates_keep_something():
    y = drop(torch.ones(1009, 97), 0.9999, training=True)
    assert 0 < (y != 0).float().mean() < 0.01
    assert y.isfinite().all()


def test_the_generator_decides():
    x = torch.ones(31, 37)

    def dropped(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return drop(x, 0.5, training=True)

    assert torch.equal(dropped(1), dropped(1))
    assert not torch.equal(dropped(1), dropped(2))


def test_the_gradient_is_the_scale_where_kept():
    torch.manual_seed(3)
    x = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    y = drop(x, 0.25, training=True)
    (slope,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(slope, torch.where(y == 0, 0.0, 4 / 3).double())


def chi_square(counts: torch.Tensor) -> float:
    expected = counts.sum() / len(counts)
    return float((counts - expected).pow(2).sum() / expected)


def test_hashed_bytes_are_even_and_independent():
    """256 cells: the statistic has mean 255 and deviation 23; 5 deviations are a failure."""
    shape = torch.Size([1 << 18])
    first, second = (
        hashed_bytes(torch.tensor([seed], dtype=torch.int32), shape).long() for seed in (8, 9)
    )
    assert first.min() >= 0
    assert first.max() < NUM_LEVELS
    for numbers in (
        first,
        first[:-1] // 16 * 16 + first[1:] // 16,
        first // 16 * 16 + second // 16,
    ):
        assert 140 < chi_square(torch.bincount(numbers, minlength=256)) < 370
