"""Attention written out: every query is compared with every key, and takes the weighted mean of the values.

    scores  = q kᵀ / √head_dim  (+ bias)
    weights = softmax(scores over the keys that may be looked at)
    output  = weights v

Vaswani et al. 2017, section 3.2.1. This file is the reference: plain, quadratic, correct; every other kernel in the
folder is compared with it, gradients included. The scaling keeps the scores' variance at one, since a dot product of
two unit-variance vectors has variance head_dim, and a saturated softmax would pass no gradient.

Tested against: numbers worked by hand, torch's scaled_dot_product_attention, finite differences.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from headwise.attention.biases import Bias, VectorBias, dense_bias
from headwise.attention.masks import Mask
from headwise.attention.normalizers import masked_softmax
from headwise.attention.precision import leave_half
from headwise.attention.shapes import check_shapes


def attention_weights(
    q: Float[Tensor, "batch head query head_dim"],
    k: Float[Tensor, "batch head key head_dim"],
    mask: Mask,
    bias: Bias | None = None,
) -> Float[Tensor, "batch head query key"]:
    """How much of each key every query takes; each row sums to one, or to zero if nothing may be seen."""
    scores = leave_half(q) @ leave_half(k).transpose(-2, -1) / math.sqrt(q.shape[-1])
    allowed = mask.dense(q.shape[-2], k.shape[-2], q.device)
    if bias is not None:
        bias = dense_bias(bias, q.shape[-2], k.shape[-2])
        scores = scores + bias
        visible = (
            bias != -torch.inf
        )  # a bias of minus infinity hides a key as a mask does, be it the last one of a row
        allowed = visible if allowed is None else allowed & visible
    return masked_softmax(scores, allowed).to(q.dtype)


@dataclass(frozen=True)
class FullAttention:
    """The reference kernel; `dropout_rate` forgets some of the weights while training."""

    dropout_rate: float = 0.0

    def prepare(self, mask: Mask, num_queries: int, num_keys: int, device: torch.device) -> Mask:
        return mask.resolve(num_queries, num_keys, device)

    def __call__(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        k: Float[Tensor, "batch head key head_dim"],
        v: Float[Tensor, "batch head key value_dim"],
        mask: Mask,
        *,
        bias: Bias | None = None,
        training: bool = False,
    ) -> Float[Tensor, "batch head query value_dim"]:
        check_shapes(q, k, v)
        weights = attention_weights(q, k, mask, bias)
        if training and self.dropout_rate > 0:
            weights = F.dropout(weights, self.dropout_rate)
        output = weights @ v
        return output + bias.mix(weights) if isinstance(bias, VectorBias) else output

    def weights(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        k: Float[Tensor, "batch head key head_dim"],
        mask: Mask,
        *,
        bias: Bias | None = None,
    ) -> Float[Tensor, "batch head query key"]:
        return attention_weights(q, k, mask, bias)
