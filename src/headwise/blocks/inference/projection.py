"""Computes a linear layer together with the norm before it, and the activation and residual after
it.

    y = activation(norm(x) Wᵀ + b) + residual
    or, with the norm after each sub-layer, … + norm(residual)

It is one function because a GPU computes it as one kernel if the rows are few (gpu/projection.py).
A decoding step of one sentence is fifty such products, each of which takes as long as its launch.
With many rows the products dominate, and those of torch are used.

Tested against: the modules called one after the other, and gpu/projection.py against this.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from headwise.blocks.normalization import LayerNorm, RMSNorm
from headwise.gpu import runs_kernels

FEW_ROWS = 3
"""Larger numbers of rows use the products of torch."""
MAX_DIM = 2048
"""The kernels hold a whole row in registers."""

Activation = Callable[[Tensor], Tensor]
_NAMES: dict[Activation | None, str | None] = {None: None, F.relu: "relu", F.gelu: "gelu"}


def project(
    x: Float[Tensor, "row dim"],
    weight: Float[Tensor, "output dim"],
    bias: Float[Tensor, "output"] | None,
    *,
    norm: nn.Module | None = None,
    activation: Activation | None = None,
    residual: Float[Tensor, "row output"] | None = None,
    residual_norm: nn.Module | None = None,
) -> Float[Tensor, "row output"]:
    """`norm` is applied to x, `residual_norm` to the residual; not both at once."""
    numbers = _norm_numbers(norm if norm is not None else residual_norm)
    if (
        fuses(x)
        and x.shape[1] <= MAX_DIM
        and activation in _NAMES
        and numbers is not NotImplemented
    ):
        from headwise.gpu.projection import project as project_few

        return project_few(
            x,
            weight,
            bias,
            activation=_NAMES[activation],
            residual=residual,
            norm=numbers,
            norm_residual=residual_norm is not None,
        )
    x = x if norm is None else norm(x)
    if activation is F.relu and bias is not None and x.is_cuda:
        y = torch._addmm_activation(bias, x, weight.t())  # fused into the product there, at no cost
    else:
        y = F.linear(x, weight, bias)
        y = y if activation is None else activation(y)
    if residual is None:
        return y
    return y + (residual if residual_norm is None else residual_norm(residual))


def fuses(x: Float[Tensor, "row dim"]) -> bool:
    """Whether the operations around a product of these rows are computed in the same kernel."""
    return x.shape[0] <= FEW_ROWS and runs_kernels(x)


def add_and_norm(
    x: Float[Tensor, "row dim"], y: Float[Tensor, "row dim"] | None, norm: nn.Module
) -> tuple[Float[Tensor, "row dim"], Float[Tensor, "row dim"]]:
    """The sum and its norm: what many rows need between two products."""
    numbers = _norm_numbers(norm)
    if runs_kernels(x) and numbers is not None and numbers is not NotImplemented:
        from headwise.gpu.projection import add_and_norm as add_and_norm_at_once

        return add_and_norm_at_once(x, y, numbers)
    total = x if y is None else x + y
    return total, norm(total)


def _norm_numbers(norm: nn.Module | None) -> tuple[Tensor, Tensor | None, float] | None:
    match norm:
        case None | nn.Identity():
            return None
        case LayerNorm() if norm.gain.shape[0] <= MAX_DIM:
            return norm.gain, norm.shift, norm.epsilon
        case RMSNorm() if norm.gain.shape[0] <= MAX_DIM:
            return norm.gain, None, norm.epsilon
        case _:
            return NotImplemented
