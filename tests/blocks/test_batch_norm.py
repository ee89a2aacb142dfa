"""Batch norm over tokens: torch's own over the real tokens alone."""

import torch
from torch import nn

from headwise.blocks.batch_norm import BatchNorm

ROWS, TIME, DIM = 3, 5, 7


def test_is_torchs_over_the_real_tokens(generator: torch.Generator) -> None:
    ours, theirs = BatchNorm(DIM).double(), nn.BatchNorm1d(DIM).double()
    for _ in range(3):
        x = torch.randn(ROWS, TIME, DIM, generator=generator, dtype=torch.float64).requires_grad_()
        real = torch.rand(ROWS, TIME, generator=generator) < 0.6
        expected = theirs(x[real])
        given = ours(x, real)
        torch.testing.assert_close(given[real], expected)
        weight = torch.randn(expected.shape, generator=generator, dtype=torch.float64)
        one, other = (
            torch.autograd.grad((y * weight).sum(), x, retain_graph=True)[0]
            for y in (given[real], expected)
        )
        torch.testing.assert_close(one, other)
        torch.testing.assert_close(ours.running_mean, theirs.running_mean)
        torch.testing.assert_close(ours.running_variance, theirs.running_var)
    ours.eval(), theirs.eval()
    torch.testing.assert_close(ours(x).flatten(0, 1), theirs(x.flatten(0, 1)))


def test_filling_changes_nothing(generator: torch.Generator) -> None:
    x = torch.randn(ROWS, TIME, DIM, generator=generator)
    real = torch.rand(ROWS, TIME, generator=generator) < 0.6
    one, other = BatchNorm(DIM), BatchNorm(DIM)
    torch.testing.assert_close(
        one(x, real)[real], other(x.masked_fill(~real[..., None], torch.nan), real)[real]
    )
    assert one.running_variance.equal(other.running_variance)


def test_without_a_single_token_there_is_no_nan() -> None:
    norm = BatchNorm(DIM)
    assert norm(torch.ones(1, 2, DIM), torch.zeros(1, 2, dtype=torch.bool)).isfinite().all()
    assert norm.running_variance.isfinite().all()


def test_a_batch_of_nothing_says_nothing(generator: torch.Generator) -> None:
    norm = BatchNorm(DIM).double()
    x = torch.randn(ROWS, TIME, DIM, generator=generator, dtype=torch.float64)
    norm(x)
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    for rows, mask in ((x, torch.zeros(ROWS, TIME, dtype=torch.bool)), (x[:0], None)):
        assert norm(rows, mask).isfinite().all()
        assert all(torch.equal(value, before[name]) for name, value in norm.state_dict().items())
