"""A linear layer for inference on a CPU: weights stored as fp16, products and sums in fp32.

    y = x W̃ᵀ + b          W̃ = W rounded to 11 bits of precision; x, products and sums are fp32

One row times a matrix takes as long as reading the matrix, and fp16 halves the bytes. The rounding
error is smaller than with bf16 (1e-4 of a result against 2.6e-3), because activations are not
rounded at all. fbgemm's kernel, made for this case, prefetches and reads 1.7 times as many bytes a
second as oneDNN's fp32 one; with many rows both are bound by the same fp32 products.

Not differentiable; the original layer is not changed. Tested against: the product with rounded
weights in double precision.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.blocks.inference.operator_probe import quantized_engine
from headwise.errors import UsageError


class HalfLinear(nn.Module):
    def __init__(self, weight: Float[Tensor, "output input"], bias: Tensor | None) -> None:
        super().__init__()
        weight = weight.detach().float()
        if weight.abs().amax() > torch.finfo(torch.float16).max:
            raise UsageError(
                "a weight of this model exceeds 65,504, the greatest number of fp16; use "
                "--precision fp32",
                "此模型有权重超过 fp16 的最大数 65,504；请用 --precision fp32",
            )
        with quantized_engine("fbgemm"):
            packed = torch.ops.quantized.linear_prepack_fp16(
                weight, None if bias is None else bias.detach().float()
            )
        self.packed = packed
        self._multiply = torch.ops.quantized.linear_dynamic_fp16.default._op

    def forward(self, x: Float[Tensor, "*batch input"]) -> Float[Tensor, "*batch output"]:
        return self._multiply(x, self.packed)
