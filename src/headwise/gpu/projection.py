"""Computes a linear layer with its norm, bias, activation and residual by GPU kernels.

One kernel computes all of them for a few rows; another computes addition and norm for many rows.
With few rows a product is bound by reading its weights, and a kernel that only adds or normalises
costs as much as the product itself: the time of its launch. So one Triton program computes a part
of the outputs: it normalises the rows itself (a row is small), multiplies with its part of the
weights and applies what follows the product. The weights do not depend on the previous kernel, so
they are loaded while that one still runs (`gdc_wait` marks where its results are first needed).

Tested against: blocks/inference/projection.py.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from headwise.gpu.early_launch import early_start, wait_for_last_kernel

Norm = tuple[Tensor, Tensor | None, float]
"""Gain, shift (None: RMS) and epsilon."""

NO_NORM, NORM_INPUT, NORM_RESIDUAL = 0, 1, 2
ACTIVATIONS = {None: 0, "relu": 1, "gelu": 2}


@triton.jit
def _standardize(x, real, size, epsilon, CENTRED: tl.constexpr):
    """A row minus its mean, divided by its standard deviation."""
    if CENTRED:
        x = tl.where(real, x - tl.sum(x, 0) / size, 0.0)
    return x * tl.rsqrt(tl.sum(x * x, 0) / size + epsilon)


@triton.jit
def _project(
    x_at, weight_at, bias_at, residual_at, gain_at, shift_at, out_at,
    num_outputs, x_stride, residual_stride, epsilon,
    INPUTS: tl.constexpr, ROWS: tl.constexpr, OUTPUTS: tl.constexpr, CHUNK: tl.constexpr,
    WIDE: tl.constexpr,
    HAS_BIAS: tl.constexpr, HAS_RESIDUAL: tl.constexpr, NORM: tl.constexpr, CENTRED: tl.constexpr,
    ACTIVATION: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    output = tl.program_id(0) * OUTPUTS + tl.arange(0, OUTPUTS)
    output_real = output < num_outputs
    place = tl.arange(0, CHUNK)
    real = place < INPUTS
    weight = tl.load(
        weight_at + output[:, None] * INPUTS + place[None, :],
        mask=output_real[:, None] & real[None, :],
        other=0.0,
    )
    if HAS_BIAS:
        bias = tl.load(bias_at + output, mask=output_real, other=0.0).to(tl.float32)
    wait_for_last_kernel(EARLY)
    for row in tl.static_range(ROWS):
        x = tl.load(x_at + row * x_stride + place, mask=real, other=0.0)
        if NORM == 1:
            wide = _standardize(x.to(tl.float32), real, INPUTS, epsilon, CENTRED)
            wide *= tl.load(gain_at + place, mask=real, other=0.0).to(tl.float32)
            if CENTRED:
                wide += tl.load(shift_at + place, mask=real, other=0.0).to(tl.float32)
            x = wide.to(x.dtype)
        total = tl.sum(weight.to(tl.float32) * x.to(tl.float32)[None, :], 1)
        if HAS_BIAS:
            total += bias
        if ACTIVATION == 1:
            total = tl.maximum(total, 0.0)
        if ACTIVATION == 2:
            total = 0.5 * total * (1.0 + tl.erf(total * 0.7071067811865476))
        if HAS_RESIDUAL:
            own = tl.load(
                residual_at + row * residual_stride + output, mask=output_real, other=0.0
            ).to(tl.float32)
            if NORM == 2:
                across = tl.arange(0, WIDE)
                inside = across < num_outputs
                stream = tl.load(
                    residual_at + row * residual_stride + across, mask=inside, other=0.0
                ).to(tl.float32)
                mean = tl.sum(stream, 0) / num_outputs if CENTRED else 0.0
                stream = tl.where(inside, stream - mean, 0.0)
                own = (own - mean) * tl.rsqrt(tl.sum(stream * stream, 0) / num_outputs + epsilon)
                own *= tl.load(gain_at + output, mask=output_real, other=0.0).to(tl.float32)
                if CENTRED:
                    own += tl.load(shift_at + output, mask=output_real, other=0.0).to(tl.float32)
            total += own
        tl.store(
            out_at + row * num_outputs + output, total.to(out_at.dtype.element_ty), mask=output_real
        )


def project(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *,
    activation: str | None,
    residual: Tensor | None,
    norm: Norm | None,
    norm_residual: bool,
) -> Tensor:
    """See `blocks.inference.projection.project`."""
    num_rows, num_inputs = x.shape
    num_outputs = weight.shape[0]
    gain, shift, epsilon = norm if norm is not None else (weight, None, 0.0)
    place = NO_NORM if norm is None else NORM_RESIDUAL if norm_residual else NORM_INPUT
    out = torch.empty((num_rows, num_outputs), dtype=x.dtype, device=x.device)
    outputs = 4 if num_outputs <= 2048 else 8
    _project[(triton.cdiv(num_outputs, outputs),)](
                x, weight, weight if bias is None else bias, x if residual is None else residual,
                gain,
        gain if shift is None else shift, out,
        num_outputs, x.stride(0), 0 if residual is None else residual.stride(0), epsilon,
        INPUTS=num_inputs, ROWS=num_rows, OUTPUTS=outputs, CHUNK=triton.next_power_of_2(num_inputs),
        WIDE=triton.next_power_of_2(num_outputs) if place == NORM_RESIDUAL else 1,
        HAS_BIAS=bias is not None, HAS_RESIDUAL=residual is not None, NORM=place,
        CENTRED=shift is not None,
        ACTIVATION=ACTIVATIONS[activation], num_warps=4, **early_start(x),
    )  # fmt: skip
    return out


@triton.jit
def _add_and_norm(
    x_at, y_at, gain_at, shift_at, sum_at, out_at, x_stride, y_stride, epsilon,
    DIM: tl.constexpr, WIDE: tl.constexpr, ADDS: tl.constexpr, CENTRED: tl.constexpr,
    EARLY: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, WIDE)
    real = place < DIM
    gain = tl.load(gain_at + place, mask=real, other=0.0).to(tl.float32)
    wait_for_last_kernel(EARLY)
    x = tl.load(x_at + row * x_stride + place, mask=real, other=0.0).to(tl.float32)
    if ADDS:
        x += tl.load(y_at + row * y_stride + place, mask=real, other=0.0).to(tl.float32)
        # The sum is rounded first: the rounded value is both stored and normalised.
        rounded = x.to(sum_at.dtype.element_ty)
        tl.store(sum_at + row * DIM + place, rounded, mask=real)
        x = rounded.to(tl.float32)
    x = _standardize(x, real, DIM, epsilon, CENTRED) * gain
    if CENTRED:
        x += tl.load(shift_at + place, mask=real, other=0.0).to(tl.float32)
    tl.store(out_at + row * DIM + place, x.to(out_at.dtype.element_ty), mask=real)


def add_and_norm(x: Tensor, y: Tensor | None, norm: Norm) -> tuple[Tensor, Tensor]:
    """x + y (x itself if there is no y) and its norm."""
    gain, shift, epsilon = norm
    num_rows, dim = x.shape
    out = torch.empty((num_rows, dim), dtype=x.dtype, device=x.device)
    total = x if y is None else torch.empty_like(out)
    _add_and_norm[(num_rows,)](
                x, x if y is None else y, gain, gain if shift is None else shift, total, out,
        x.stride(0), 0 if y is None else y.stride(0), epsilon,
        DIM=dim, WIDE=triton.next_power_of_2(dim), ADDS=y is not None, CENTRED=shift is not None,
        num_warps=1 if dim <= 1024 else 4, **early_start(x),
    )  # fmt: skip
    return total, out
