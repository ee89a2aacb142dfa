"""A linear layer for inference on a CPU: its weight laid out once as the processor's matrix kernel wants to read it.

    y = x Wᵀ + b          W in fp32 (the same numbers up to rounding) or bf16 (half the bytes, 8 bits of precision)

A decoding step of one sentence multiplies one row with every weight of the decoder, so it takes as long as reading them. torch's
`F.linear` reads W row by row in one thread; oneDNN's blocked layout is read by all threads in order: 1 row × 512 → 8,000 in 0.7 ms
instead of 1.6, and in 0.17 ms as bf16. The layout is made by torch's own operators, which its compiler uses for the
same purpose; they are not public, so they are tried before anything relies on them (trial.py).

Not differentiable; the layer it is made from is left alone. Tested against: nn.Linear.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class PackedLinear(nn.Module):
    """Takes and gives fp32; inside, products are in `dtype`."""

    def __init__(self, weight: Float[Tensor, "output input"], bias: Tensor | None, *, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.bias = None if bias is None else bias.detach().to(dtype)
        # No size of batch is promised: the layout for one row is slower from two rows on, and no faster for one.
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach().to(dtype), None)
        self._multiply = torch.ops.mkldnn._linear_pointwise.default

    def forward(self, x: Float[Tensor, "*batch input"]) -> Float[Tensor, "*batch output"]:
        return self._multiply(x.to(self.dtype), self.packed, self.bias, "none", [], "").float()
