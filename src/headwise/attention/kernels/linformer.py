"""Linformer: keys and values are projected along the sentence to `rank` keys and values.

    k' = Eᵀ k,  v' = Fᵀ v            E, F: [max_length, rank], learned; the t-th token of a
    output = softmax(q k'ᵀ / √head_dim) v'            sentence uses row t

Wang et al. 2020. Queries attend to the projected keys instead of the tokens. A projected key mixes
all tokens of the sentence, so the kernel can neither be causal (the sum would contain later tokens)
nor take a bias, and sentences longer than `max_length` have no rows. Padding is left out of the
sums. A column to which no token of the sentence contributes is masked, so that rank = length with
the identity is full attention.

Sharing: `heads` (E and F for all heads of a layer), `keys_values` (E = F), `layers` (E = F, one for
all layers of a stack).

Packed rows need sums per sentence. With e_t and f_t the rows of E and F that token t uses, both
products are sums of the kind that linear attention needs and are computed by the same code
(linear/masked_products.py), for any number of sentences in a row:

    scores_i = Σ_j [same sentence] (q_i · k_j) e_j
    output_i = Σ_j [same sentence] (weights_i · f_j) v_j

Cost per head, n tokens, d = head_dim, r = rank: 8 n r d operations in a padded batch of one
sentence per row without a mask; about twice that and 4 n C (d + r) for packed rows in chunks of C;
full attention takes 4 n² d. The table of weights, n r, is the largest intermediate result.

Tested against: linformer (the package) with copied weights; the identity at full rank.
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from headwise.attention.biases import Bias
from headwise.attention.capabilities import (
    VIEW_NEEDS,
    AttentionKind,
    KernelSize,
    MaskPart,
    Role,
    RowLimit,
)
from headwise.attention.linear.masked_products import CHUNK, masked_products
from headwise.attention.masks import Mask
from headwise.attention.multi_head import Kernel, Need
from headwise.attention.normalizers import masked_softmax
from headwise.attention.packed_segments import find_first
from headwise.attention.precision import product_dtype, widen
from headwise.attention.refusals import name_able, refuse_bias
from headwise.attention.segment_order import (
    OrderedMask,
    order_mask,
    prepare_order,
    put_in_order,
)
from headwise.attention.shapes import check_shapes, empty_output, empty_weights, is_empty
from headwise.attention.size_checks import BoundedSize, check_sizes
from headwise.errors import SettingsError, UsageError
from headwise.initialization import InitialWeights, normal_by_width
from headwise.settings.kind import Words

Sharing = Literal["heads", "keys_values", "layers"]


class LinformerAttention(nn.Module):
    def __init__(
        self,
        rank: int,
        max_length: int,
        *,
        sharing: Sharing = "heads",
        dropout_rate: float = 0.0,
        chunk: int = CHUNK,
    ) -> None:
        super().__init__()
        check_sizes(
            "LinformerAttention",
            BoundedSize("rank", rank),
            BoundedSize("max_length", max_length),
            BoundedSize("chunk", chunk),
        )
        _check_rank(rank, max_length, owner="LinformerAttention")
        self.rank, self.max_length, self.sharing = rank, max_length, sharing
        self.dropout_rate, self.chunk = dropout_rate, chunk
        self.key_summary = nn.Parameter(
            nn.init.normal_(torch.empty(max_length, rank), std=rank**-0.5)
        )
        own = nn.Parameter(nn.init.normal_(torch.empty(max_length, rank), std=rank**-0.5))
        self.value_summary = own if sharing == "heads" else self.key_summary

    def initial_weights(self) -> InitialWeights:
        return [(self.key_summary, normal_by_width), (self.value_summary, normal_by_width)]

    @property
    def is_shared_by_layers(self) -> bool:
        """Whether all layers of a stack use the same kernel."""
        return self.sharing == "layers"

    def prepare(self, mask: Mask, num_queries: int, num_keys: int, device: torch.device) -> Mask:
        return prepare_order(mask, num_queries, num_keys, kind="linformer", causal_too=False)

    def forward(
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
        refuse_bias(bias, kind="linformer")
        if is_empty(q, k):
            return empty_output(q, k, v)
        lined = order_mask(mask, q.shape[2], k.shape[2], kind="linformer", causal_too=False)
        with torch.autocast(q.device.type, enabled=False):
            number = self._numbers(lined, k)
            weights = self._weights(q, k, number, lined)
            if training and self.dropout_rate > 0:
                weights = F.dropout(weights, self.dropout_rate)
            dtype = product_dtype(v)
            summary = self._rows(self.value_summary, number, v)
            return masked_products(
                weights.to(dtype), summary, v.to(dtype), lined, chunk=self.chunk
            ).to(v.dtype)

    def weights(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        k: Float[Tensor, "batch head key head_dim"],
        mask: Mask,
        *,
        bias: Bias | None = None,
    ) -> Float[Tensor, "batch head query key"]:
        """The factor of each token's value in the output; projections may subtract, so it may be
        negative."""
        refuse_bias(bias, kind="linformer")
        if is_empty(q, k):
            return empty_weights(q, k)
        lined = order_mask(mask, q.shape[2], k.shape[2], kind="linformer", causal_too=False)
        number = self._numbers(lined, k)
        summary = widen(self._rows(self.value_summary, number, q))
        table = self._weights(q, k, number, lined) @ summary.mT
        return table.masked_fill(~lined.dense(q.shape[2], k.shape[2], q.device), 0.0).to(q.dtype)

    def _weights(
        self, q: Tensor, k: Tensor, number: Tensor, lined: OrderedMask
    ) -> Float[Tensor, "batch head query rank"]:
        dtype = product_dtype(q)
        summary = self._rows(self.key_summary, number, q)
        scaled = (widen(q) / math.sqrt(q.shape[-1])).to(dtype)
        scores = masked_products(scaled, k.to(dtype), summary, lined, chunk=self.chunk)
        # Which columns any token contributes to: the same sum over |E| in place of keys, with one
        # feature and for one head.
        of_queries, of_keys = (
            torch.ones(q.shape[0], 1, x.shape[2], 1, dtype=dtype, device=q.device) for x in (q, k)
        )
        sizes = summary.detach().abs().expand(q.shape[0], -1, -1, -1)
        present = masked_products(of_queries, of_keys, sizes, lined, chunk=self.chunk) > 0
        return masked_softmax(scores, present)

    def _rows(
        self, table: Tensor, number: Tensor, like: Tensor
    ) -> Float[Tensor, "#batch 1 key rank"]:
        return table[number].to(product_dtype(like))[:, None]

    def _numbers(self, lined: OrderedMask, k: Tensor) -> Int[Tensor, "#batch key"]:
        """Index of each key in its sentence. The lengths of sentences are known on the device only,
        so the length of the row is checked."""
        num_keys = k.shape[2]
        if num_keys > self.max_length:
            able, able_zh = name_able(lambda settings: settings.longest_row is None)
            raise UsageError(
                "attention.kind=linformer has rows for sentences of at most "
                f"max_length={self.max_length} tokens and got a row of {num_keys}; "
                f"set attention.max_length higher, or use {able}, which take any length",
                f"attention.kind=linformer 只能处理不超过 max_length={self.max_length} "
                f"个词元的句子，得到长 {num_keys} 的一行；"
                f"请调高 attention.max_length，或用不限长度的 {able_zh}",
            )
        if lined.line is None:
            time = torch.arange(num_keys, device=k.device)[None]
            return (
                time
                if lined.visible is None
                else (time - find_first(lined.visible)[:, None]).clamp(min=0)
            )
        line = lined.line
        # In sorted order a sentence is contiguous: the number of keys before, less the number
        # before the sentence began.
        is_key = put_in_order(
            line, None, torch.ones(*line.run.shape[:1], 1, num_keys, 1, device=k.device)
        )[:, 0, :, 0]
        before = is_key.long().cumsum(1) - is_key.long()
        starts = F.pad(line.run[:, 1:] != line.run[:, :-1], (1, 0), value=True)
        number = before - torch.where(starts, before, 0).cummax(1).values
        return number.gather(1, line.inverse)[:, :num_keys]


def _check_rank(rank: int, max_length: int, *, owner: str) -> None:
    """A rule of the kernel and of its settings; `owner` is whose settings the message names."""
    if rank > max_length:
        raise SettingsError(
            f"{owner}.rank={rank} is over {owner}.max_length={max_length}, but a summary cannot "
            f"hold more than the sentence has tokens; set {owner}.rank={max_length} or less, or a "
            f"larger {owner}.max_length",
            f"{owner}.rank={rank} 大于 {owner}.max_length={max_length}，"
            f"而摘要不会比句子的词元更多；请设 {owner}.rank={max_length} 或更小，"
            f"或增大 {owner}.max_length",
        )


class Linformer(AttentionKind):
    """A sentence is projected to `rank` learned mixtures of its tokens; not for a decoder."""

    kind: Literal["linformer"] = "linformer"
    rank: int = Field(default=64, ge=1, le=65536)
    """Number of projected keys and values of a sentence; if not given, at most `max_length`."""
    max_length: int = Field(default=512, ge=1, le=1 << 20)
    """Longer rows are refused."""
    sharing: Sharing = "heads"
    """One pair of projections for all heads of a layer; one for keys and values; one for all
    layers."""

    title: ClassVar[Words] = ("Linformer (low rank)", "Linformer（低秩）")
    summary: ClassVar[Words] = (
        "The sentence is projected to a few learned mixtures; weights may be negative, the rank is "
        "the "
        "number of mixtures.",
        "把句子概括为少数学得的混合；权重可为负，秩即混合的个数。",
    )
    paper: ClassVar[str] = "Wang et al. 2020, Linformer: Self-Attention with Linear Complexity"
    cost: ClassVar[str] = "n · h · (16 · rank · d + 4 · chunk · (rank + d))"
    memory: ClassVar[str] = "n · h · (4 · chunk + 8 · rank + 2 · d)"
    masks: ClassVar[frozenset[MaskPart]] = frozenset(("padding", "segments"))
    knows_order: ClassVar[bool] = True
    sums_to_one: ClassVar[bool] = False

    @model_validator(mode="before")
    @classmethod
    def _follow_the_length(cls, data: Any) -> Any:
        """If only a short max_length is given, the rank is reduced to it."""
        length = data.get("max_length") if isinstance(data, Mapping) else None
        default = cls.model_fields["rank"].default
        if type(length) is not int or not 1 <= length < default or "rank" in data:
            return data
        return {**data, "rank": length}

    @model_validator(mode="after")
    def _sums_up(self) -> "Linformer":
        _check_rank(self.rank, self.max_length, owner="attention")
        return self

    @classmethod
    def example(cls) -> "Linformer":
        return cls(rank=8, max_length=256)

    @property
    def size(self) -> KernelSize:
        return KernelSize(("rank", "秩"), self.rank)

    def resize(self, size: int) -> "Linformer":
        return self.model_copy(update={"rank": size})

    @property
    def takes(self) -> frozenset[Need]:
        return VIEW_NEEDS

    @property
    def longest_row(self) -> RowLimit:
        return RowLimit("max_length", self.max_length)

    def fit_length(self, length: int) -> "Linformer":
        return self.model_copy(update={"max_length": length, "rank": min(self.rank, length)})

    def refuse_role(self, role: Role) -> Words | None:
        if role != "decoder":
            return None
        return (
            "a mixture of all tokens contains later tokens",
            "全句的混合包含后面的词元",
        )

    @property
    def cost_terms(self) -> dict[str, int | float]:
        return super().cost_terms | {"chunk": CHUNK}

    def build_kernel(self, *, head_dim: int, dropout_rate: float) -> Kernel:
        return LinformerAttention(
            self.rank, self.max_length, sharing=self.sharing, dropout_rate=dropout_rate
        )
