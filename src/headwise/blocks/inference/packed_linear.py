"""A linear layer for inference on a CPU: its weight laid out once as the processor's matrix kernel
wants to read it.

    y = x Wᵀ + b
    W in fp32 (the same numbers up to rounding) or bf16 (half the bytes, 8 bits of precision)

A decoding step of one sentence multiplies one row with every weight of the decoder, so it takes as
long as reading them. torch's `F.linear` reads W row by row in one thread; oneDNN's blocked layout
is read by all threads in order: 1 row × 512 → 8,000 in 0.7 ms instead of 1.6, and in 0.17 ms as
bf16. The layout is made by torch's own operators, which its compiler uses for the same purpose;
they are not public, so they are tried before anything relies on them (operator_probe.py).

oneDNN compiles a product for every number of rows it meets and keeps it, some 0.4 MB each; batches
of a server have all numbers. So rows are filled up to one of few numbers: 90 MiB less for the
pocket model after 8,000 sentences in batches of all sizes, and 3 % faster, for compiling takes
time, too (base size: 2 % slower).

Not differentiable; the layer it is made from is left alone. Tested against: nn.Linear, for every
number of rows.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

STEPS = ((8, 1), (64, 8), (1024, 32), (4096, 128))
"""Up to so many rows, filled up to a multiple of so many."""
LARGE_STEP = 512


def round_rows(num_rows: int) -> int:
    """The next number of rows for which there is a product."""
    step = next((step for most, step in STEPS if num_rows <= most), LARGE_STEP)
    return -(-num_rows // step) * step


class PackedLinear(nn.Module):
    """Takes and gives fp32; inside, products are in `dtype`."""

    def __init__(
        self, weight: Float[Tensor, "output input"], bias: Tensor | None, *, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.dtype = dtype
        self.bias = None if bias is None else bias.detach().to(dtype)
        # No size of batch is promised: the layout for one row is slower from two rows on, and no
        # faster for one.
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach().to(dtype), None)
        self._multiply = torch.ops.mkldnn._linear_pointwise.default

    def forward(self, x: Float[Tensor, "*batch input"]) -> Float[Tensor, "*batch output"]:
        x = x.to(self.dtype)
        num_rows = x.numel() // x.shape[-1]
        missing = round_rows(num_rows) - num_rows
        if not missing:
            return self._multiply(x, self.packed, self.bias, "none", [], "").float()
        filled = functional.pad(x.reshape(num_rows, -1), (0, 0, 0, missing))
        y = self._multiply(filled, self.packed, self.bias, "none", [], "")[:num_rows]
        return y.view(*x.shape[:-1], -1).float()
