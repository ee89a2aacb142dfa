"""A linear layer for inference on a CPU, with its weight stored in the layout that oneDNN reads.

    y = x Wᵀ + b
    W in fp32 (the same numbers up to rounding) or bf16 (half the bytes, 8 bits of precision)

A decoding step of one sentence multiplies one row with every weight of the decoder, so it takes as
long as reading them. torch's `F.linear` reads W row by row in one thread. oneDNN's blocked layout
is read by all threads in order: 1 row × 512 → 8,000 in 0.7 ms instead of 1.6, and in 0.17 ms as
bf16. torch's own operators make the layout; its compiler uses them for the same purpose. They are
not public, so they are tested before anything relies on them (operator_probe.py).

oneDNN compiles a product for every number of rows and keeps it, some 0.4 MB each, and the batches
of a server have all numbers of rows. So rows are padded to one of a few numbers. After 8,000
sentences in batches of all sizes this saves 90 MiB for the pocket model, and is 3 % faster, because
compiling takes time (base size: 2 % slower).

Not differentiable; the original layer is not changed. Tested against: nn.Linear, for every number
of rows.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

STEPS = ((8, 1), (64, 8), (1024, 32), (4096, 128))
"""Pairs (limit, multiple): up to `limit` rows, padded to a multiple of `multiple`."""
LARGE_STEP = 512


def round_rows(num_rows: int) -> int:
    """The next number of rows for which there is a compiled product."""
    step = next((step for most, step in STEPS if num_rows <= most), LARGE_STEP)
    return -(-num_rows // step) * step


class PackedLinear(nn.Module):
    """Takes and returns fp32; products are computed in `dtype`."""

    def __init__(
        self, weight: Float[Tensor, "output input"], bias: Tensor | None, *, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.dtype = dtype
        self.bias = None if bias is None else bias.detach().to(dtype)
        # No batch size is given: the layout for one row is slower from two rows on, and no faster
        # for one.
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
