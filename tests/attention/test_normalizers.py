"""Weights against bisection in double precision, against softmax, by finite differences; hidden
keys get exactly nothing."""

import pytest
import torch
from torch import Tensor

from headwise.attention.normalizers import (
    Entmax,
    Hard,
    Normalizer,
    Softmax,
    Sparsemax,
    masked_softmax,
)
from headwise.randomness import torch_generator

ALL: dict[str, Normalizer] = {
    "softmax": Softmax(),
    "sparsemax": Sparsemax(),
    "entmax": Entmax(),
    "straight_through": Hard(),
    "gumbel": Hard("gumbel", temperature=0.5),
}


def draw(*shape: int, scale: float = 2.0) -> Tensor:
    return scale * torch.randn(
        shape, generator=torch_generator("normalizers", *shape), dtype=torch.float64
    )


def bisect(scores: Tensor, alpha: float) -> Tensor:
    """max((α−1) s − τ, 0)^(1/(α−1)) with τ such that they sum to one, found by halving an interval
    that holds it."""
    z = (alpha - 1) * scores
    low, high = z.amax(-1, keepdim=True) - 1, z.amax(-1, keepdim=True)
    for _ in range(200):
        middle = (low + high) / 2
        total = (z - middle).clamp_min(0).pow(1 / (alpha - 1)).sum(-1, keepdim=True)
        low, high = torch.where(total >= 1, middle, low), torch.where(total >= 1, high, middle)
    return (z - low).clamp_min(0).pow(1 / (alpha - 1))


@pytest.mark.parametrize(("name", "alpha"), [("sparsemax", 2.0), ("entmax", 1.5)])
@pytest.mark.parametrize("num_keys", [1, 2, 7, 211])
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_equals_bisection(name: str, alpha: float, num_keys: int, scale: float) -> None:
    scores = draw(2, 3, 5, num_keys, scale=scale)
    weights = ALL[name](scores, None)
    torch.testing.assert_close(weights, bisect(scores, alpha), rtol=1e-9, atol=1e-9)
    assert weights.sum(-1).allclose(torch.ones(()).double())


def test_sparse_weights_worked_by_hand() -> None:
    """Scores 1, 0.6, −1. sparsemax: τ = (1.6 − 1)/2 = 0.3. entmax: halves .5, .3, −.5; two keys:
    mean .4, spread .02, τ = .4 − √.49 = −.3."""
    scores = torch.tensor([[[[1.0, 0.6, -1.0]]]], dtype=torch.float64)
    torch.testing.assert_close(
        Sparsemax()(scores, None)[0, 0, 0], torch.tensor([0.7, 0.3, 0.0]).double()
    )
    torch.testing.assert_close(
        Entmax()(scores, None)[0, 0, 0], torch.tensor([0.64, 0.36, 0.0]).double()
    )


def test_ties_share() -> None:
    scores = torch.tensor([[[[2.0, 2.0, 2.0, -5.0]]]])
    for name in ("sparsemax", "entmax"):
        torch.testing.assert_close(
            ALL[name](scores, None)[0, 0, 0], torch.tensor([1 / 3, 1 / 3, 1 / 3, 0.0])
        )


@pytest.mark.parametrize("name", ALL)
def test_hidden_keys_get_nothing_and_empty_rows_are_zero(name: str) -> None:
    scores = draw(2, 3, 5, 7)
    allowed = torch.rand(2, 1, 5, 7, generator=torch_generator("hidden")) < 0.6
    allowed[1, :, 2] = False
    scores[~allowed.expand_as(scores)] = 1e6
    scores.requires_grad_()
    for training in (False, True):
        weights = ALL[name](scores, allowed, training=training)
        assert weights[~allowed.expand_as(weights)].eq(0).all()
        sums = weights.sum(-1)
        assert sums[allowed.any(-1).expand_as(sums)].allclose(torch.ones(()).double())
        (gradient,) = torch.autograd.grad((weights * draw(2, 3, 5, 7)).sum(), scores)
        assert gradient.isfinite().all()
        assert gradient[~allowed.expand_as(gradient)].eq(0).all()


@pytest.mark.parametrize("name", ["softmax", "sparsemax", "entmax"])
def test_gradients_hold(name: str) -> None:
    scores = draw(1, 2, 3, 7, scale=0.7).requires_grad_()
    allowed = torch.tensor([True, True, False, True, True, True, False])[None, None, None]
    assert torch.autograd.gradcheck(lambda x: ALL[name](x, None), [scores])
    assert torch.autograd.gradcheck(lambda x: ALL[name](x, allowed), [scores])


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_extremes_stay_finite(name: str, dtype: torch.dtype) -> None:
    largest = torch.finfo(dtype).max / 4
    scores = torch.tensor(
        [[[[largest, -largest, 0.0], [0.0, 0.0, 0.0], [-largest] * 3]]], dtype=dtype
    ).requires_grad_()
    weights = ALL[name](scores, torch.tensor([True, True, False])[None, None, None], training=True)
    assert weights.dtype == dtype
    assert weights[..., 2].eq(0).all()
    assert weights.float().sum(-1).allclose(torch.ones(()))
    (gradient,) = torch.autograd.grad(weights.float().square().sum(), scores)
    assert gradient.isfinite().all()


def test_hard_takes_the_best_and_learns_by_the_softmax() -> None:
    scores = draw(2, 3, 5, 7).requires_grad_()
    weights = Hard(temperature=0.7)(scores, None)
    assert weights.equal(torch.nn.functional.one_hot(scores.argmax(-1), 7).double())
    direction = draw(2, 3, 5, 7)
    (given,) = torch.autograd.grad((weights * direction).sum(), scores)
    (soft,) = torch.autograd.grad((masked_softmax(scores / 0.7, None) * direction).sum(), scores)
    torch.testing.assert_close(given, soft)


def test_gumbel_draws_keys_as_often_as_softmax_says_and_only_while_training() -> None:
    scores = torch.tensor([0.0, 1.0, 2.0]).expand(1, 1, 20_011, 3)
    drawn = Hard("gumbel")(scores, None, training=True)
    assert drawn.sum(-1).eq(1).all()
    share, expected = drawn.mean((0, 1, 2)), scores[0, 0, 0].softmax(-1)
    assert ((share - expected).abs() < 5 * (expected * (1 - expected) / 20_011).sqrt()).all()
    assert Hard("gumbel")(scores, None)[..., 2].eq(1).all()
