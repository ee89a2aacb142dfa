"""Linear attention: the softmax is replaced by products of features, so that the cost is linear.

    out_i = φ(q_i)ᵀ Σ_j φ(k_j) v_jᵀ  /  φ(q_i)ᵀ Σ_j φ(k_j)             φ(x) = elu(x) + 1

The sum over keys and values is computed once and shared by all queries. Katharopoulos et al. 2020,
*Transformers are RNNs*. There are three forms of the same numbers: parallel (all sums at once),
chunked (causal or packed rows: linear/masked_products.py), and recurrent. While decoding,
everything read so far is one head_dim × head_dim matrix and one vector, so a step costs the same
after ten tokens and after ten thousand. The vector is stored as the last column of the matrix:
values get a component of ones, and one product yields numerator and denominator.

Cost per head, n tokens, d = head_dim, C = 128: 4 n d² operations (parallel), n (4 d² + 4 C d)
(causal), 8 n d² more if packed and not causal; full attention takes 4 n² d. From n ≈ d + C on,
linear attention takes fewer operations; at 65,536 tokens fewer by a factor of 340 (causal, d = 64),
so that reading q, k, v and writing the output, 4 n d numbers, dominates.

There are no separate weights to drop: dropout removes a value for all queries.

Tested against: its own quadratic form, outputs and gradients; step by step = whole sequence.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from headwise.attention.biases import Bias
from headwise.attention.cache import Cache
from headwise.attention.capabilities import ROW_MASKS, VIEW_NEEDS, AttentionKind, MaskPart
from headwise.attention.linear.feature_maps import elu_features
from headwise.attention.linear.masked_products import CHUNK, masked_products
from headwise.attention.masks import Mask
from headwise.attention.multi_head import Kernel, Need
from headwise.attention.precision import product_dtype
from headwise.attention.refusals import refuse_bias
from headwise.attention.segment_order import OrderedMask, order_mask, prepare_order
from headwise.attention.shapes import check_shapes, empty_output, empty_weights, is_empty
from headwise.settings.kind import Words

WIDTH_MULTIPLE = 8
"""Matrix units need sizes that are multiples of 8; the column of ones is padded with zeros."""


class FeatureAttention(ABC):
    """Attention whose weights are products of features; a subclass defines the features."""

    """There are no scores to which a bias could be added."""
    kind: ClassVar[str]
    dropout_rate: float
    chunk: int
    training = False

    @abstractmethod
    def features(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        k: Float[Tensor, "batch head key head_dim"],
        *,
        training: bool,
    ) -> tuple[
        Float[Tensor, "batch head query features"], Float[Tensor, "batch head key features"]
    ]:
        """φ of the queries and of the keys."""

    @abstractmethod
    def num_features_of(self, head_dim: int) -> int: ...

    def prepare(self, mask: Mask, num_queries: int, num_keys: int, device: torch.device) -> Mask:
        return prepare_order(mask, num_queries, num_keys, kind=self.kind)

    def attend(
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
        refuse_bias(bias, kind=self.kind)
        if is_empty(q, k):
            return empty_output(q, k, v)
        lined = order_mask(mask, q.shape[2], k.shape[2], kind=self.kind)
        with torch.autocast(q.device.type, enabled=False):
            features = self.features(q, k, training=training)
            rate = self.dropout_rate if training else 0.0
            return attend_by_features(*features, v, lined, dropout_rate=rate, chunk=self.chunk)

    def weights(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        k: Float[Tensor, "batch head key head_dim"],
        mask: Mask,
        *,
        bias: Bias | None = None,
    ) -> Float[Tensor, "batch head query key"]:
        refuse_bias(bias, kind=self.kind)
        if is_empty(q, k):
            return empty_weights(q, k)
        lined = order_mask(mask, q.shape[2], k.shape[2], kind=self.kind)
        with torch.autocast(q.device.type, enabled=False):
            return implied_weights(*self.features(q, k, training=self.training), lined).to(q.dtype)

    def make_cache(
        self, *, max_length: int, num_rows: int, num_heads: int, head_dim: int, like: Tensor
    ) -> Cache:
        return SumCache(num_rows, num_heads, self.num_features_of(head_dim), head_dim, like=like)

    def step(
        self,
        q: Float[Tensor, "row head 1 head_dim"],
        k: Float[Tensor, "row head 1 head_dim"],
        v: Float[Tensor, "row head 1 head_dim"],
        cache: Cache,
        *,
        bias: Bias | None = None,
    ) -> Float[Tensor, "row head 1 head_dim"]:
        refuse_bias(bias, kind=self.kind)
        assert isinstance(cache, SumCache)
        with torch.autocast(q.device.type, enabled=False):
            return cache.read_and_add(*self.features(q, k, training=False), v)


@dataclass(frozen=True)
class LinearAttention(FeatureAttention):
    kind: ClassVar[str] = "linear"
    dropout_rate: float = 0.0
    chunk: int = CHUNK
    __call__ = FeatureAttention.attend

    def features(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        k: Float[Tensor, "batch head key head_dim"],
        *,
        training: bool,
    ) -> tuple[
        Float[Tensor, "batch head query features"], Float[Tensor, "batch head key features"]
    ]:
        return elu_features(q), elu_features(k)

    def num_features_of(self, head_dim: int) -> int:
        return head_dim


class SumCache:
    """The state of linear attention: Σ φ(k) [v, 1]ᵀ for each row and head, in fp32 (fp64 for fp64),
    of constant size."""

    def __init__(
        self, num_rows: int, num_heads: int, num_features: int, value_dim: int, *, like: Tensor
    ) -> None:
        dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
        shape = (num_rows, num_heads, num_features, padded_width(value_dim))
        self.sums = torch.zeros(shape, dtype=dtype, device=like.device)
        self.length = 0

    def read_and_add(
        self,
        q: Float[Tensor, "row head 1 features"],
        k: Float[Tensor, "row head 1 features"],
        v: Float[Tensor, "row head 1 value_dim"],
    ) -> Float[Tensor, "row head 1 value_dim"]:
        """Add one position to the state and attend to all positions in it, the new one included."""
        self.sums = self.sums + k.transpose(-2, -1) @ with_ones(v).to(self.sums.dtype)
        self.length += 1
        return divide(q @ self.sums, v)

    def reorder(self, index: Int[Tensor, " new_row"]) -> None:
        self.sums = self.sums[index]


def attend_by_features(
    q: Float[Tensor, "batch head query features"],
    k: Float[Tensor, "batch head key features"],
    v: Float[Tensor, "batch head key value_dim"],
    lined: OrderedMask,
    *,
    dropout_rate: float = 0.0,
    chunk: int = CHUNK,
) -> Float[Tensor, "batch head query value_dim"]:
    """The mean of the values, weighted by products of features."""
    values = v
    if dropout_rate > 0:
        values = v * F.dropout(torch.ones_like(v[..., :1]), dropout_rate)
    dtype = product_dtype(v)
    sums = masked_products(
        q.to(dtype), k.to(dtype), with_ones(values).to(dtype), lined, chunk=chunk
    )
    return divide(sums, v)


def padded_width(value_dim: int) -> int:
    return -(-(value_dim + 1) // WIDTH_MULTIPLE) * WIDTH_MULTIPLE


def with_ones(
    v: Float[Tensor, "batch head key value_dim"],
) -> Float[Tensor, "batch head key width"]:
    """[v, 1, 0 …]: the sum of the ones is the denominator."""
    width = v.shape[-1]
    return F.pad(F.pad(v, (0, 1), value=1.0), (0, padded_width(width) - width - 1))


def divide(
    sums: Float[Tensor, "batch head query width"], v: Float[Tensor, "batch head key value_dim"]
) -> Float[Tensor, "batch head query value_dim"]:
    """Numerator divided by denominator, in the dtype of v; zeros for a query without a visible
    key."""
    width = v.shape[-1]
    total = sums[..., width : width + 1]
    return (sums[..., :width] / total.masked_fill(total == 0, 1.0)).to(v.dtype)


def implied_weights(
    q: Float[Tensor, "batch head query features"],
    k: Float[Tensor, "batch head key features"],
    lined: OrderedMask,
) -> Float[Tensor, "batch head query key"]:
    """The table of weights, which only inspection needs: products of features, each row divided by
    its sum."""
    products = q @ k.transpose(-2, -1)
    products = products.masked_fill(~lined.dense(q.shape[2], k.shape[2], q.device), 0.0)
    total = products.sum(-1, keepdim=True)
    return products / total.masked_fill(total == 0, 1.0)


class Linear(AttentionKind):
    """Products of features instead of a softmax: linear time, and a decoder state of constant
    size."""

    kind: Literal["linear"] = "linear"

    title: ClassVar[Words] = ("linear", "线性")
    summary: ClassVar[Words] = (
        "Features instead of a softmax: the table is never built, its rank is at most the width of "
        "a "
        "head.",
        "用特征代替 softmax：不建表，秩不超过头的宽度。",
    )
    paper: ClassVar[str] = "Katharopoulos et al. 2020, Transformers are RNNs"
    cost: ClassVar[str] = "4 · n · h · (chunk + 2 · d) · d"
    memory: ClassVar[str] = "n · h · (2 · chunk + 12 · d)"
    masks: ClassVar[frozenset[MaskPart]] = ROW_MASKS
    num_extra_terms: ClassVar[int] = 64

    @property
    def takes(self) -> frozenset[Need]:
        return VIEW_NEEDS

    @property
    def cost_terms(self) -> dict[str, int | float]:
        return super().cost_terms | {"chunk": CHUNK}

    def build_kernel(self, *, head_dim: int, dropout_rate: float) -> Kernel:
        return LinearAttention(dropout_rate)
