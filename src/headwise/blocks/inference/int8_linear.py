"""A linear layer in 8-bit integers, for inference on a CPU: a quarter of the bytes of fp32.

    W_oi ≈ scale_o · w_oi,  w in -127 … 127,  scale_o = max_i |W_oi| / 127 for each output o
    x_i  ≈ scale_x · (x̂_i − zero), determined at every call
    y_o  = scale_x · scale_o · Σ_i (x̂_i − zero) w_oi + b_o

Jacob et al. 2018. Weights are rounded once, activations at every call (*dynamic* quantisation), so
no calibration data are needed; sums are exact in 32 bits. Two implementations, tried in this order
(models/inference.py):

    fbgemm    one kernel: find the range of x, round, multiply, scale. The range is that of the
              whole batch.
    integer   `torch._int_mm` between ordinary operators, one range per row: slower, but without
              quantised tensors, which torch is about to remove.

Not differentiable; the original layer is not changed. Tested against: nn.Linear, and the formula in
double precision.
"""

import warnings

import torch
from jaxtyping import Float, Int8
from torch import Tensor, nn

from headwise.blocks.inference.operator_probe import quantized_engine

LARGEST = 127
# Without VNNI, fbgemm adds products in pairs of 16 bits, where 8-bit activations overflow; 7 bits
# do not.
VNNI_IS_THERE: bool = getattr(torch.cpu, "_is_vnni_supported", lambda: False)()


def quantize_rows(
    x: Float[Tensor, "row dim"],
) -> tuple[Int8[Tensor, "row dim"], Float[Tensor, "row 1"]]:
    """Whole numbers from -127 to 127, and the factor of each row that restores the weights."""
    scale = x.abs().amax(1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny) / LARGEST
    return (x / scale).round_().to(torch.int8), scale


class FbgemmLinear(nn.Module):
    def __init__(self, weight: Float[Tensor, "output input"], bias: Tensor | None) -> None:
        super().__init__()
        integers, scale = quantize_rows(weight.detach().float())
        zero = torch.zeros(len(integers), dtype=torch.long)
        with quantized_engine("fbgemm"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # fbgemm packs int8 weights only as quantised tensors, whose constructors warn that they
            # will be removed.
            quantized = torch._make_per_channel_quantized_tensor(
                integers, scale[:, 0].double(), zero, 0
            )
            self.packed = torch.ops.quantized.linear_prepack(
                quantized, None if bias is None else bias.detach().float()
            )
        self._multiply = torch.ops.quantized.linear_dynamic.default._op

    def forward(self, x: Float[Tensor, "*batch input"]) -> Float[Tensor, "*batch output"]:
        return self._multiply(x, self.packed, not VNNI_IS_THERE)


class IntegerLinear(nn.Module):
    def __init__(self, weight: Float[Tensor, "output input"], bias: Tensor | None) -> None:
        super().__init__()
        integers, scale = quantize_rows(weight.detach().float())
        self.columns, self.scale = integers.t(), scale[:, 0]
        self.bias = None if bias is None else bias.detach().float()

    def forward(self, x: Float[Tensor, "*batch input"]) -> Float[Tensor, "*batch output"]:
        integers, scale = quantize_rows(x.reshape(-1, x.shape[-1]))
        y = torch._int_mm(integers, self.columns).float().mul_(scale).mul_(self.scale)
        y = y if self.bias is None else y.add_(self.bias)
        return y.view(*x.shape[:-1], -1)
