"""Laplace attention: a query takes most from the keys that are nearest to it.

    weights_ij = softmax over j of −‖q_i − k_j‖₁ / width
    output_i   = Σ_j weights_ij v_j

The softmax of a distance is kernel regression (Nadaraya & Watson 1964) with a Laplace kernel.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from headwise.attention.biases import Bias, dense_bias
from headwise.attention.capabilities import AttentionKind
from headwise.attention.masks import Mask
from headwise.attention.multi_head import Kernel
from headwise.attention.normalizers import masked_softmax
from headwise.attention.precision import widen
from headwise.attention.refusals import refuse_vectors
from headwise.attention.shapes import check_shapes, empty_output, empty_weights, is_empty
from headwise.settings.kind import Words

LARGEST = 1e15
"""Differences of larger numbers would not add up in float32."""


@dataclass(frozen=True)
class LaplaceAttention:
    """The kernel: functions of queries, keys, values and a mask, without weights of its own."""

    width: float = 1.0
    dropout_rate: float = 0.0

    def prepare(self, mask: Mask, num_queries: int, num_keys: int, device: torch.device) -> Mask:
        return mask.resolve(num_queries, num_keys, device)

    def __call__(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Mask,
        *,
        bias: Bias | None = None,
        training: bool = False,
    ) -> Tensor:
        check_shapes(q, k, v)
        refuse_vectors(bias, kind="laplace")
        if is_empty(q, k):
            return empty_output(q, k, v)
        weights = self.weights(q, k, mask, bias=bias)
        if training and self.dropout_rate > 0:
            weights = F.dropout(weights, self.dropout_rate)
        return weights @ v

    def weights(self, q: Tensor, k: Tensor, mask: Mask, *, bias: Bias | None = None) -> Tensor:
        if is_empty(q, k):
            return empty_weights(q, k)
        near, far = (widen(x).clamp(-LARGEST, LARGEST) for x in (q, k))
        # A column at a time: a table of all differences would be head_dim times as large.
        distance = sum(
            (near[..., i, None] - far[..., None, :, i]).abs() for i in range(q.shape[-1])
        )
        scores = -distance / self.width
        allowed = mask.dense(q.shape[-2], k.shape[-2], q.device)
        if bias is not None:
            table = dense_bias(bias, q.shape[-2], k.shape[-2])
            scores, visible = scores + table, table != -torch.inf
            allowed = visible if allowed is None else allowed & visible
        return masked_softmax(scores, allowed).to(q.dtype)


class Laplace(AttentionKind):
    """Keys near the query count most, by the sum of absolute differences."""

    kind: Literal["laplace"] = "laplace"
    width: float = Field(default=4.0, ge=1e-3, le=1e3)
    """How far a key counts: the distance at which its weight falls to 1/e."""

    title: ClassVar[Words] = ("Laplace", "拉普拉斯")
    summary: ClassVar[Words] = (
        "Keys near the query count most, by the sum of absolute differences.",
        "离查询越近的键权重越大，距离为各维差的绝对值之和。",
    )
    paper: ClassVar[str] = "Nadaraya 1964; Watson 1964"
    cost: ClassVar[str] = "2 · n² · h · d"  # weights @ v; differences are no products
    memory: ClassVar[str] = "n² · h · (d + 2)"

    def build_kernel(self, *, head_dim: int, dropout_rate: float) -> Kernel:
        return LaplaceAttention(self.width, dropout_rate)


__all__ = ["Laplace", "LaplaceAttention"]
