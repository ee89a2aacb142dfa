"""Packed and rounded linear layers against nn.Linear, and against the formula of rounding written out."""

import pytest
import torch
from torch import Tensor, nn

from headwise.blocks import int8_linear, packed_linear
from headwise.blocks.int8_linear import FbgemmLinear, IntegerLinear, choose_int8, quantize_rows
from headwise.blocks.packed_linear import PackedLinear, refusal

needs_packing = pytest.mark.skipif(refusal(torch.float32) is not None, reason=f"{refusal(torch.float32)}")
needs_bf16 = pytest.mark.skipif(refusal(torch.bfloat16) is not None, reason=f"{refusal(torch.bfloat16)}")
INT8 = [form for form in (FbgemmLinear, IntegerLinear) if int8_linear._refusal(form) is None]


def make(generator: torch.Generator, *, bias: bool = True) -> tuple[nn.Linear, Tensor]:
    linear = nn.Linear(37, 53, bias=bias)
    with torch.no_grad():
        for parameter in linear.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return linear, torch.randn(3, 5, 37, generator=generator)


@needs_packing
@pytest.mark.parametrize("bias", [True, False])
def test_packed_is_the_same_product(bias: bool, generator: torch.Generator) -> None:
    linear, x = make(generator, bias=bias)
    packed = PackedLinear(linear.weight, linear.bias, dtype=torch.float32)
    with torch.no_grad():
        torch.testing.assert_close(packed(x), linear(x), atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(packed(x[1, :1]), linear(x[1, :1]), atol=1e-5, rtol=1e-5)


@needs_bf16
def test_bf16_is_the_product_of_rounded_numbers(generator: torch.Generator) -> None:
    linear, x = make(generator)
    packed = PackedLinear(linear.weight, linear.bias, dtype=torch.bfloat16)
    with torch.no_grad():
        exact = x.bfloat16().double() @ linear.weight.bfloat16().double().T + linear.bias.bfloat16().double()
        found = packed(x)
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, exact.bfloat16().float(), atol=1e-6, rtol=2**-7)


@pytest.mark.parametrize("form", INT8)
@pytest.mark.parametrize("bias", [True, False])
def test_int8_is_within_half_a_step_of_each_factor(
    form: type[FbgemmLinear] | type[IntegerLinear], bias: bool, generator: torch.Generator
) -> None:
    linear, x = make(generator, bias=bias)
    with torch.no_grad():
        found, exact = form(linear.weight, linear.bias)(x), linear(x)
        # x is off by at most one step (7 bits where VNNI is missing), w by half a step: the error of the sum is bounded.
        step_x = 2 * x.abs().max() / 127
        step_w = linear.weight.abs().amax(1) / 127
        bound = step_x * linear.weight.abs().sum(1) + 0.5 * step_w * (x.abs() + step_x).sum(-1, keepdim=True)
        assert ((found - exact).abs() <= bound).all()
        assert (found - exact).norm() / exact.norm() < 0.02


def test_rounded_rows_come_back_within_half_a_step(generator: torch.Generator) -> None:
    x = torch.randn(7, 11, generator=generator) * torch.logspace(-3, 3, 7)[:, None]
    integers, scale = quantize_rows(x)
    assert integers.abs().amax(1).eq(127).all()
    assert ((integers * scale - x).abs() <= 0.5001 * scale).all()


def test_a_row_of_zeros_stays_zero() -> None:
    integers, scale = quantize_rows(torch.zeros(2, 3))
    assert integers.eq(0).all()
    assert scale.isfinite().all()


def test_each_row_of_the_integer_form_is_rounded_by_itself(generator: torch.Generator) -> None:
    linear, x = make(generator)
    form = IntegerLinear(linear.weight, linear.bias)
    with torch.no_grad():
        loud = x.clone()
        loud[0] *= 1000
        assert form(loud)[1:].equal(form(x)[1:])


@pytest.mark.parametrize("engine", torch.backends.quantized.supported_engines)
def test_the_engine_of_the_process_is_left_as_it_was(engine: str, generator: torch.Generator) -> None:
    linear, _ = make(generator)
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = engine
    try:
        choose_int8.__wrapped__()
        assert torch.backends.quantized.engine == engine
    finally:
        torch.backends.quantized.engine = before
    assert linear.weight.requires_grad


def test_a_missing_operator_is_a_reason_not_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: object, **options: object) -> None:
        raise AttributeError("no operator of this name")

    monkeypatch.setattr(packed_linear.PackedLinear, "__init__", missing)
    assert "no operator" in str(packed_linear.refusal.__wrapped__(torch.float32))
    monkeypatch.setattr(FbgemmLinear, "__init__", missing)
    form, reason = choose_int8.__wrapped__()
    assert form is IntegerLinear
    assert "no operator" in str(reason)
    monkeypatch.setattr(IntegerLinear, "__init__", missing)
    assert choose_int8.__wrapped__()[0] is None


def test_wrong_products_are_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IntegerLinear, "forward", lambda self, x: x.new_zeros(3, 48))
    assert int8_linear._refusal(IntegerLinear) == "its products are wrong here"
    monkeypatch.setattr(PackedLinear, "forward", lambda self, x: x.new_zeros(3, 48))
    if refusal(torch.float32) is None:
        assert refusal.__wrapped__(torch.float32) == "its products are wrong here"
