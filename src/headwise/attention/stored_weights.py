"""Full attention that stores its weights for the backward pass, for training in bf16 on a CPU.

    forward    P = softmax(q kᵀ / √head_dim),  y = P v;  P is stored in the dtype of the inputs
    backward   dV = Pᵀ dy    dP = dy vᵀ    dS = P ⊙ (dP − Σ_keys P ⊙ dP)
               dq = dS k / √head_dim    dk = dSᵀ q / √head_dim

A fused kernel does not store P and computes it again, which pays where memory is slow and
arithmetic cheap. In bf16 on a CPU the opposite holds: torch's fused backward converts every block
to and from fp32 (30 ms where these products take 8: 32 rows of 128, 4 heads of 64, two cores with
AVX-512 bf16), and P of rows of 128 in bf16 is no larger than what the feed-forward network stores.
The softmax works in fp32 inside; its input and P are rounded to bf16, as in the attention of
transformers and fairseq under autocast. attention/kernels/fused.py decides when this is used.

Tested against: attention/kernels/full.py in fp32, outputs and gradients, and by gradcheck in double
precision.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable


def attend_storing_weights(
    q: Float[Tensor, "batch head query head_dim"],
    k: Float[Tensor, "batch head key head_dim"],
    v: Float[Tensor, "batch head key value_dim"],
    visible: Bool[Tensor, "#batch #head #query key"] | None,
) -> Float[Tensor, "batch head query value_dim"]:
    """Every query must see a key: a row of `visible` without one gives NaN."""
    output: Tensor = _StoredAttention.apply(q, k, v, visible)
    return output


class _StoredAttention(torch.autograd.Function):
    """Batch and head are one axis inside, as batched products want it."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None) -> Tensor:
        ctx.scale = q.shape[-1] ** -0.5
        table = (*q.shape[:-1], k.shape[-2])
        # Autocast would convert the output of the softmax, and so P, to fp32.
        with torch.autocast(q.device.type, enabled=False):
            hidden = q.new_zeros(()) if visible is None else _additive(visible, q.dtype)
            start = hidden.expand(table).flatten(0, 1)
            q, k, v = q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)
            scores = torch.baddbmm(start, q, k.transpose(1, 2), alpha=ctx.scale)
            weights = scores.softmax(-1)
            output = torch.bmm(weights, v)
        ctx.save_for_backward(q, k, v, weights)
        return output.unflatten(0, table[:2])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights = ctx.saved_tensors
        leading, grad_output = grad_output.shape[:2], grad_output.flatten(0, 1)
        grad_v = torch.bmm(weights.transpose(1, 2), grad_output)
        grad_weights = torch.bmm(grad_output, v.transpose(1, 2))
        grad_scores = torch._softmax_backward_data(grad_weights, weights, -1, weights.dtype).mul_(
            ctx.scale
        )
        grad_q, grad_k = torch.bmm(grad_scores, k), torch.bmm(grad_scores.transpose(1, 2), q)
        return *(gradient.unflatten(0, leading) for gradient in (grad_q, grad_k, grad_v)), None


def _additive(visible: Tensor, dtype: torch.dtype) -> Tensor:
    """0 for visible pairs and minus infinity elsewhere: the product is added to it, so masking
    needs no pass of its own."""
    return torch.zeros_like(visible, dtype=dtype).masked_fill_(~visible, -torch.inf)
