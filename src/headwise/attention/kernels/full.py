"""Full attention: every query is compared with every key and takes the weighted mean of the values.

    scores  = q kᵀ / √head_dim  (+ bias)
    weights = softmax(scores over the keys that the mask allows)
    output  = weights v

Vaswani et al. 2017, section 3.2.1. This file is the reference: plain and quadratic. Every other
kernel in the folder is compared with it, gradients included. The scaling keeps the variance of the
scores at one: a dot product of two vectors of unit variance has variance head_dim, and a saturated
softmax would pass no gradient.

Tested against: numbers worked by hand, torch's scaled_dot_product_attention, finite differences.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from headwise.attention.biases import Bias, VectorBias, dense_bias
from headwise.attention.capabilities import EVERY_NEED, SCORE_NEEDS, AttentionKind, Role, RowLimit
from headwise.attention.kernels.scored import ScoredAttention
from headwise.attention.masks import Mask
from headwise.attention.multi_head import Kernel, Need
from headwise.attention.normalizers import masked_softmax
from headwise.attention.precision import leave_half
from headwise.attention.score_choices import (
    LocalWindowSettings,
    ScaledDotSettings,
    ScoreSettings,
    SoftmaxSettings,
    WeightsSettings,
    build_local_window,
    build_normalizer,
    build_score,
)
from headwise.attention.shapes import check_shapes
from headwise.settings.kind import Words


def attention_weights(
    q: Float[Tensor, "batch head query head_dim"],
    k: Float[Tensor, "batch head key head_dim"],
    mask: Mask,
    bias: Bias | None = None,
) -> Float[Tensor, "batch head query key"]:
    """The weight of each key for every query; each row sums to one, or to zero if the mask hides
    all keys."""
    scores = leave_half(q) @ leave_half(k).transpose(-2, -1) / math.sqrt(q.shape[-1])
    allowed = mask.dense(q.shape[-2], k.shape[-2], q.device)
    if bias is not None:
        bias = dense_bias(bias, q.shape[-2], k.shape[-2])
        scores = scores + bias
        # A bias of minus infinity hides a key as a mask does, even the last visible key of a row.
        visible = bias != -torch.inf
        allowed = visible if allowed is None else allowed & visible
    return masked_softmax(scores, allowed).to(q.dtype)


@dataclass(frozen=True)
class FullAttention:
    """The reference kernel; `dropout_rate` is the share of weights set to zero while training."""

    is_plain: ClassVar[bool] = True
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


class Full(AttentionKind):
    """Written out, quadratic, the reference: for reading and for comparisons; its score, normalizer
    and window can be exchanged."""

    kind: Literal["full"] = "full"
    score: ScoreSettings = ScaledDotSettings()
    """How a query and a key are compared."""
    weights: WeightsSettings = SoftmaxSettings()
    """How scores become weights."""
    window: LocalWindowSettings | None = None
    """The part of the source that a target token attends to (cross-attention only); null: all of
    it."""

    title: ClassVar[Words] = ("full", "全注意力")
    summary: ClassVar[Words] = (
        "Every token attends to every token; the reference for all other kernels.",
        "每个词元关注所有词元；其他内核都与它比较。",
    )
    paper: ClassVar[str] = "Vaswani et al. 2017, Attention Is All You Need"
    cost: ClassVar[str] = "4 · n² · h · d"
    memory: ClassVar[str] = "n · h · (2 · n + 3 · d)"
    is_reference: ClassVar[bool] = True

    @property
    def is_plain(self) -> bool:
        """Whether score, normalizer and window are those of the paper."""
        return self == Full()

    @property
    def takes(self) -> frozenset[Need]:
        return EVERY_NEED if self.is_plain else SCORE_NEEDS

    @property
    def longest_row(self) -> RowLimit | None:
        limit = self.score.longest_row
        return None if limit is None else RowLimit(f"score.{limit.key}", limit.tokens)

    def refuse_role(self, role: Role) -> Words | None:
        if self.window is None or role == "cross":
            return None
        return (
            f"its window.kind={self.window.kind} follows a target word through its source; write "
            "it under "
            "model.decoder.cross_attention instead",
            f"其 window.kind={self.window.kind} 只用于目标词对源句的注意力；"
            "请改写在 model.decoder.cross_attention 下",
        )

    def build_kernel(self, *, head_dim: int, dropout_rate: float) -> Kernel:
        if self.is_plain:
            return FullAttention(dropout_rate)
        window = self.window
        return ScoredAttention(
            build_score(self.score, query_dim=head_dim, key_dim=head_dim),
            build_normalizer(self.weights),
            window=None if window is None else build_local_window(window, head_dim=head_dim),
            dropout_rate=dropout_rate,
        )
