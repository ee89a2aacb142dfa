"""relu(x Wᵀ + b) as one operation, which saves memory traffic on a GPU.

The hidden layer is the widest tensor of a Transformer. As two operations, a GPU stores it, reads it
again for the maximum, stores the result and a mask for the backward pass: 4.5 passes over it. Here
the product stores max(0, ·) at once (an epilogue of cuBLAS), and the backward pass finds in that
result where the slope is zero:

    y = max(0, x Wᵀ + b)
    d = dy where y > 0, else 0        dx = d W        dW = dᵀ x        db = Σ d

Tested against: the two operations written out, values and gradients in double precision.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable


def linear_relu(
    x: Float[Tensor, "*batch dim"],
    weight: Float[Tensor, "hidden dim"],
    bias: Float[Tensor, " hidden"],
) -> Float[Tensor, "*batch hidden"]:
    """Under autocast in its dtype, as a linear layer would be."""
    device = x.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
    rows = x.reshape(-1, x.shape[-1]).to(dtype)
    return _LinearRelu.apply(rows, weight.to(dtype), bias.to(dtype)).view(*x.shape[:-1], -1)


class _LinearRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        y = torch._addmm_activation(bias, x, weight.t())
        ctx.save_for_backward(x, weight, y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, weight, y = ctx.saved_tensors
        slope = torch.where(y > 0, slope, 0.0)
        return slope @ weight, slope.t() @ x, slope.sum(0)
