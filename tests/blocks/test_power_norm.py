"""Power norm: the paper's recurrences written out, what is exact in it, and a state that is
saved."""

import pytest
import torch
from torch import Tensor

from headwise.blocks.power_norm import PowerNorm

ROWS, TIME, DIM, EPSILON = 3, 5, 7, 1e-5


def draw(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    x, gradient = torch.randn(2, ROWS, TIME, DIM, generator=generator, dtype=torch.float64)
    return x, gradient, torch.rand(ROWS, TIME, generator=generator) < 0.7


def test_the_recurrences_written_out(generator: torch.Generator) -> None:
    norm = PowerNorm(DIM, epsilon=EPSILON, decay=0.8, warmup=2).double()
    with torch.no_grad():
        norm.gain.normal_(generator=generator)
        norm.shift.normal_(generator=generator)
    square, nu, seen = (
        torch.ones(DIM).double(),
        torch.zeros(DIM).double(),
        torch.zeros(DIM).double(),
    )
    for number in range(1, 6):
        x, gradient, real = draw(generator)
        gradient = torch.where(real[..., None], gradient, 0.0)
        leaf = x.clone().requires_grad_()
        y = norm(leaf, real)
        (given,) = torch.autograd.grad(y, leaf, gradient)

        scaled = x.clone().requires_grad_()
        inner = scaled / (scaled.square().mean(-1, keepdim=True) + EPSILON).sqrt()
        batch_square = inner.detach()[real].square().mean(0)
        psi = batch_square if number <= 2 else square
        z = inner.detach() / (psi + EPSILON).sqrt()
        torch.testing.assert_close(y, z * norm.gain + norm.shift)
        by_z = gradient * norm.gain.detach()
        inner_gradient = (by_z - nu * z * real[..., None]) / (psi + EPSILON).sqrt()
        (expected,) = torch.autograd.grad(inner, scaled, inner_gradient)
        torch.testing.assert_close(given, expected)

        gamma, lam = z[real].square().mean(0), (by_z * z)[real].mean(0)
        nu = nu * (1 - 0.2 * gamma) + 0.2 * lam
        seen += batch_square
        square = seen / number if number <= 2 else 0.8 * square + 0.2 * batch_square
        torch.testing.assert_close(norm.running_square, square)
        torch.testing.assert_close(norm.gradient_mean, nu)


def test_with_a_mean_that_has_settled_the_gradient_is_that_of_dividing_by_the_batch(
    generator: torch.Generator,
) -> None:
    """On one batch again and again in the warm-up, ν goes to the value at which the stand-in is the
    exact derivative."""
    norm = PowerNorm(DIM, decay=0.5, warmup=1000).double()
    x, gradient, _ = draw(generator)
    for _ in range(200):
        leaf = x.clone().requires_grad_()
        (given,) = torch.autograd.grad(norm(leaf), leaf, gradient)
    exact = x.clone().requires_grad_()
    inner = exact * (exact.square().mean(-1, keepdim=True) + EPSILON).rsqrt()
    y = inner * (inner.square().mean((0, 1)) + EPSILON).rsqrt()
    (expected,) = torch.autograd.grad(y, exact, gradient)
    torch.testing.assert_close(given, expected, atol=1e-4, rtol=1e-3)


def test_filling_changes_nothing(generator: torch.Generator) -> None:
    x, gradient, real = draw(generator)
    gradient = torch.where(real[..., None], gradient, 0.0)
    results = []
    for padding in (0.0, 1e3):
        norm = PowerNorm(DIM, warmup=1).double()
        for _ in range(3):
            leaf = torch.where(real[..., None], x, padding).requires_grad_()
            y = norm(leaf, real)
            y.backward(gradient)
        assert not leaf.grad[~real].any(), "nothing is sent through padding to what made it"
        results.append((y[real], leaf.grad[real], norm.running_square, norm.gradient_mean))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def test_after_the_warm_up_a_token_does_not_know_its_batch(generator: torch.Generator) -> None:
    norm = PowerNorm(DIM, warmup=0).double()
    x, other, _ = draw(generator)
    state = {name: value.clone() for name, value in norm.state_dict().items()}
    together = norm(torch.cat([x, 9 * other]))[:ROWS]
    norm.load_state_dict(state)
    torch.testing.assert_close(norm(x), together)
    norm.eval()
    torch.testing.assert_close(norm(x)[:1], norm(x[:1]))


def test_a_saved_state_goes_on_with_the_same_bits(generator: torch.Generator) -> None:
    norm, copy = PowerNorm(DIM, warmup=2), PowerNorm(DIM, warmup=2)
    batches = [torch.randn(ROWS, TIME, DIM, generator=generator) for _ in range(6)]

    def learn(module: PowerNorm, batch: Tensor) -> Tensor:
        leaf = batch.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(module(leaf).square().sum(), leaf)
        return gradient

    for batch in batches[:3]:
        learn(norm, batch)
    copy.load_state_dict(norm.state_dict())
    for batch in batches[3:]:
        assert learn(norm, batch).equal(learn(copy, batch))
    assert all(value.equal(copy.state_dict()[name]) for name, value in norm.state_dict().items())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_worked_out_in_fp32(
    dtype: torch.dtype, generator: torch.Generator
) -> None:
    norm = PowerNorm(DIM)
    x = torch.randn(ROWS, TIME, DIM, generator=generator)
    low = norm(x.to(dtype))
    assert low.dtype == dtype
    assert norm.running_square.dtype == torch.float32
    torch.testing.assert_close(
        low.float(), PowerNorm(DIM)(x.to(dtype).float()), atol=0.02, rtol=0.02
    )


def test_a_batch_of_nothing_says_nothing(generator: torch.Generator) -> None:
    """Neither padding alone nor no rows at all: the running square was 0 after the one, no number
    for ever after the other."""
    norm = PowerNorm(DIM, epsilon=EPSILON, warmup=3).double()
    x, gradient, real = draw(generator)
    norm(x, real).backward(gradient)
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    for rows, mask in ((x, torch.zeros_like(real)), (x[:0], real[:0]), (x[:0], None)):
        leaf = rows.clone().requires_grad_()
        output = norm(leaf, mask)
        output.backward(torch.zeros_like(output))
        assert output.isfinite().all()
        assert all(torch.equal(value, before[name]) for name, value in norm.state_dict().items())
