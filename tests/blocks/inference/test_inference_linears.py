"""Packed and rounded linear layers against nn.Linear, and against the formula of rounding written
out."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from headwise.blocks.inference.half_linear import HalfLinear
from headwise.blocks.inference.int8_linear import FbgemmLinear, IntegerLinear, quantize_rows
from headwise.blocks.inference.operator_probe import MakeLinear, quantized_engine, refusal_of
from headwise.blocks.inference.packed_linear import PackedLinear, round_rows
from headwise.errors import UsageError

PACKED, PACKED_BF16 = (
    partial(PackedLinear, dtype=dtype) for dtype in (torch.float32, torch.bfloat16)
)


def needs(make: MakeLinear) -> pytest.MarkDecorator:
    reason = refusal_of(make, tolerance=0.5)
    return pytest.mark.skipif(reason is not None, reason=f"{reason}")


INT8 = [form for form in (FbgemmLinear, IntegerLinear) if refusal_of(form, tolerance=0.5) is None]


def make(generator: torch.Generator, *, bias: bool = True) -> tuple[nn.Linear, Tensor]:
    linear = nn.Linear(37, 53, bias=bias)
    with torch.no_grad():
        for parameter in linear.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return linear, torch.randn(3, 5, 37, generator=generator)


@needs(PACKED)
@pytest.mark.parametrize("bias", [True, False])
def test_packed_is_the_same_product(bias: bool, generator: torch.Generator) -> None:
    linear, x = make(generator, bias=bias)
    packed = PACKED(linear.weight, linear.bias)
    with torch.no_grad():
        torch.testing.assert_close(packed(x), linear(x), atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(packed(x[1, :1]), linear(x[1, :1]), atol=1e-5, rtol=1e-5)


@needs(PACKED)
def test_rows_are_filled_up_to_few_numbers_and_nobody_sees_it(generator: torch.Generator) -> None:
    linear, _ = make(generator)
    packed = PACKED(linear.weight, linear.bias)
    x = torch.randn(4_099, 37, generator=generator)
    with torch.no_grad():
        for num_rows in (0, 1, 7, 8, 9, 63, 65, 131, 1_025, 4_097):
            torch.testing.assert_close(
                packed(x[:num_rows]), linear(x[:num_rows]), atol=1e-5, rtol=1e-5
            )
    assert len({round_rows(number) for number in range(1, 8_192)}) < 90
    assert all(
        number <= round_rows(number) <= 1.5 * number
        for number in range(1, 8_192)
        if number not in (9, 10)
    )


@needs(PACKED_BF16)
def test_bf16_is_the_product_of_rounded_numbers(generator: torch.Generator) -> None:
    linear, x = make(generator)
    packed = PACKED_BF16(linear.weight, linear.bias)
    with torch.no_grad():
        exact = (
            x.bfloat16().double() @ linear.weight.bfloat16().double().T
            + linear.bias.bfloat16().double()
        )
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
        # x is off by at most one step (7 bits where VNNI is missing), w by half a step: the error
        # of the sum is bounded.
        step_x = 2 * x.abs().max() / 127
        step_w = linear.weight.abs().amax(1) / 127
        bound = step_x * linear.weight.abs().sum(1) + 0.5 * step_w * (x.abs() + step_x).sum(
            -1, keepdim=True
        )
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


@needs(HalfLinear)
def test_fp16_rounds_the_weights_and_nothing_else(generator: torch.Generator) -> None:
    linear, x = make(generator)
    with torch.no_grad():
        exact = x.double() @ linear.weight.half().double().T + linear.bias.double()
        torch.testing.assert_close(
            HalfLinear(linear.weight, linear.bias)(x), exact.float(), atol=1e-5, rtol=1e-5
        )


def test_a_weight_beyond_fp16_is_refused(generator: torch.Generator) -> None:
    with pytest.raises(
        UsageError, match="exceeds 65,504, the greatest number of fp16; use --precision fp32"
    ):
        HalfLinear(torch.full((2, 3), 65_600.0), None)


@pytest.mark.parametrize("engine", torch.backends.quantized.supported_engines)
def test_the_engine_of_the_process_is_left_as_it_was(
    engine: str, generator: torch.Generator
) -> None:
    linear, _ = make(generator)
    with quantized_engine(engine):
        for form in INT8:
            form(linear.weight, linear.bias)
        assert torch.backends.quantized.engine == engine


def test_a_missing_operator_is_a_reason_not_a_crash() -> None:
    def missing(weight: Tensor, bias: Tensor | None) -> nn.Module:
        return torch.ops.mkldnn._no_operator_of_this_name(weight)

    assert "_no_operator_of_this_name" in str(refusal_of(missing, tolerance=1.0))


def test_wrong_products_are_a_reason() -> None:
    assert (
        refusal_of(lambda weight, bias: nn.Linear(32, 48), tolerance=0.5)
        == "its products are wrong here"
    )
    assert refusal_of(IntegerLinear, tolerance=0.5) is None
    assert refusal_of(IntegerLinear, tolerance=1e-4) == "its products are wrong here"
