"""Stored weights: the derivatives written out there, and that the fused kernel hands over exactly
what it says."""

import pytest
import torch
from torch import Tensor

from headwise.attention.kernels import fused
from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.masks import Mask, causal, explicit, segments
from headwise.attention.stored_weights import attend_storing_weights
from headwise.randomness import torch_generator

BATCH, HEADS, QUERIES, KEYS, HEAD_DIM, VALUE_DIM = 2, 3, 5, 7, 11, 13


def draw(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch_generator("stored", *shape), dtype=torch.float64).to(
        dtype
    )


def inputs(dtype: torch.dtype) -> list[Tensor]:
    shapes = ((QUERIES, HEAD_DIM), (KEYS, HEAD_DIM), (KEYS, VALUE_DIM))
    return [draw(BATCH, HEADS, *shape, dtype=dtype).requires_grad_() for shape in shapes]


def visible_table() -> Tensor:
    table = draw(BATCH, 1, QUERIES, KEYS) > 0.3
    table[..., 0] = True
    return table


@pytest.mark.parametrize("hidden", [False, True])
def test_derivatives_equal_finite_differences(hidden: bool) -> None:
    table = visible_table() if hidden else None
    assert torch.autograd.gradcheck(
        lambda q, k, v: attend_storing_weights(q, k, v, table), inputs(torch.float64)
    )


def test_it_is_full_attention() -> None:
    table = visible_table()
    results = []
    for attend in (
        lambda *x: attend_storing_weights(*x, table),
        lambda *x: FullAttention()(*x, explicit(table)),
    ):
        leaves = inputs(torch.float64)
        output = attend(*leaves)
        results.append([output, *torch.autograd.grad(output.square().sum(), leaves)])
    for given, expected in zip(*results, strict=True):
        assert torch.allclose(given, expected, atol=1e-12)


def compare_with_full(mask: Mask) -> None:
    """bf16 through the fused kernel under autocast, as training calls it, beside the reference in
    double precision."""
    leaves = [leaf.detach().requires_grad_() for leaf in inputs(torch.bfloat16)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = FusedAttention()(*leaves, mask)
    assert output.dtype == torch.bfloat16
    precise = [leaf.detach().double().requires_grad_() for leaf in leaves]
    expected = FullAttention()(*precise, mask)
    wanted = torch.autograd.grad(expected.sum(), precise)
    for given, exact in zip(
        (output, *torch.autograd.grad(output.sum(), leaves)), (expected, *wanted), strict=True
    ):
        assert (given.double() - exact).norm() <= 0.02 * exact.norm()


def test_training_in_bf16_on_a_cpu_is_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []

    def watched(q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None) -> Tensor:
        calls.append(visible)
        return attend_storing_weights(q, k, v, visible)

    monkeypatch.setattr(fused, "attend_storing_weights", watched)
    compare_with_full(Mask())
    compare_with_full(causal(2))
    numbers = torch.tensor([[1, 1, 2, 2, 3], [1, 2, 2, 0, 0]])
    keys = torch.tensor([[1, 1, 2, 3, 3, 3, 0], [1, 1, 2, 2, 2, 3, 3]])
    compare_with_full(segments(numbers, keys))
    assert len(calls) == 3


@pytest.mark.parametrize("reason", ["fp32", "no gradient", "bias", "dropout", "long"])
def test_everything_else_stays_with_the_fused_kernel(
    monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    def never(*_: object) -> Tensor:
        raise AssertionError(reason)

    monkeypatch.setattr(fused, "attend_storing_weights", never)
    if reason == "long":
        monkeypatch.setattr(fused, "MAX_STORED_KEYS", KEYS - 1)
    q, k, v = inputs(torch.float32 if reason == "fp32" else torch.bfloat16)
    kernel = FusedAttention(0.25 if reason == "dropout" else 0.0)
    bias = draw(1, HEADS, QUERIES, KEYS, dtype=q.dtype) if reason == "bias" else None
    with torch.set_grad_enabled(reason != "no gradient"):
        assert kernel(q, k, v, Mask(), bias=bias, training=True).isfinite().all()


def test_only_the_weights_are_stored_beside_the_inputs() -> None:
    """In bf16: a table in fp32 would double what training in bf16 holds."""
    kept: list[Tensor] = []
    leaves = inputs(torch.bfloat16)
    with (
        torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x),
        torch.autocast("cpu", dtype=torch.bfloat16),
    ):
        FusedAttention()(*leaves, causal(2))
    numbers = [x for x in kept if x.dtype != torch.bool]
    assert {x.dtype for x in numbers} == {torch.bfloat16}
    assert (
        sum(x.numel() for x in numbers)
        == sum(x.numel() for x in leaves) + BATCH * HEADS * QUERIES * KEYS
    )
