"""Longformer: every token attends to a window around it, and to a few global tokens.

    a local query i:    one softmax over { j : |i − j| ≤ window/2 } ∪ { global tokens },
                        with W_q, W_k, W_v
    a global query g:   softmax over all j of its sentence, with its own W_q', W_k', W_v'

Beltagy et al. 2020, section 3. Global tokens attend to all tokens, so they carry information
between positions that no window connects. Which tokens are global depends on the task (the paper's
classifier uses the first one); here they are the first `num_global` of every sentence, packed or
not. `window` is the two-sided size of the paper. With dilation d a local query attends to every
d-th token, d times as far; the paper does so only in its language models, which have no global
tokens, and so does this file.

Cost for n tokens: n · (window + 2 · num_global) pairs. A decoder has no global tokens, because no
token may attend to later ones; a query then attends to earlier tokens only, and the cache holds the
last window/2 · d tokens.

Tested against: transformers' LongformerSelfAttention with copied weights; attention/kernels/full.py
under the same pattern.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from headwise.attention.biases import Bias
from headwise.attention.cache import Cache
from headwise.attention.capabilities import (
    EVERY_MASK,
    LOOKS_AHEAD,
    ONE_SEQUENCE,
    AttentionKind,
    KernelSize,
    MaskPart,
    Role,
)
from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.window import WindowCache, bias_of_last
from headwise.attention.masks import Mask, explicit, number_zero
from headwise.attention.multi_head import Kernel, MultiHeadAttention, Relation
from headwise.attention.packed_segments import Sentences, find_sentences
from headwise.attention.refusals import only_self_attention, refuse_causal, refuse_offset
from headwise.attention.size_checks import BoundedSize, check_sizes
from headwise.attention.sparse.gathered import Layout, fitting_block, in_eights
from headwise.attention.sparse.sparse_attention import (
    Form,
    SparseAttention,
    SparsePlan,
    dense_by_pairs,
)
from headwise.attention.sparse.wide_rows import WideRows
from headwise.errors import SettingsError
from headwise.initialization import PROJECTION_GAIN, InitialWeights, copy_of, xavier, zeros
from headwise.settings.kind import Words


@dataclass(frozen=True, eq=False)
class LongformerPattern:
    """True if the distance is at most half a window, or if query or key is global."""

    is_global: Bool[Tensor, "batch time"] | None
    """Of packed rows. None: a row is one sentence, and no table is read for each token."""
    start: Int[Tensor, " batch"] | None
    """Where the sentence of a padded row begins."""
    num_global: int
    reach: int
    dilation: int

    @property
    def sizes(self) -> tuple[int, int]:
        table = self.start if self.is_global is None else self.is_global
        return 1 if table is None else table.shape[0], 1

    def at(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        distance = key - query
        near = (distance >= -self.reach) & (distance <= self.reach)
        if self.dilation > 1:
            near = near & (distance % self.dilation == 0)
        row = batch if self.sizes[0] > 1 else number_zero(batch)
        return near | self._is_global(row, query) | self._is_global(row, key)

    def _is_global(self, row: Tensor, token: Tensor) -> Tensor:
        if self.is_global is not None:
            return self.is_global[row, token]
        place = token if self.start is None else token - self.start[row]
        return (place >= 0) & (place < self.num_global)

    def dense(
        self, num_queries: int, num_keys: int, device: torch.device
    ) -> Bool[Tensor, "#batch 1 query key"]:
        return dense_by_pairs(self, num_queries, num_keys, device)


@dataclass(frozen=True)
class LongformerAttention(SparseAttention):
    """The kernel; with `attend` the global queries use their own queries, keys and values."""

    kind: ClassVar[str] = "longformer"
    window: int
    """Two-sided: window // 2 keys before and as many after."""
    num_global: int = 1
    dilation: int = 1
    dropout_rate: float = 0.0
    block: int | None = None
    """Number of queries in a block, which fetch their keys together; None: about half a window."""
    form: Form = "auto"

    def __post_init__(self) -> None:
        check_sizes(
            "LongformerAttention",
            BoundedSize("window", self.window, least=2, is_even=True),
            BoundedSize("num_global", self.num_global, least=0),
            BoundedSize("dilation", self.dilation),
            BoundedSize("block", self.block),
        )
        if not torch.compiler.is_compiling():
            _check_dilation(self.dilation, self.num_global, owner="LongformerAttention")

    def plan(self, mask: Mask, num_queries: int, num_keys: int, device: torch.device) -> SparsePlan:
        if self.num_global > 0:
            refuse_causal(
                self.kind, mask, ", or build it with num_global=0", "，或以 num_global=0 建立它"
            )
        only_self_attention(self.kind, num_queries, num_keys)
        if (offset := mask.causal_offset) not in (None, 0):
            without = "causal() without an offset, or ", "不带偏移的 causal()，或 "
            raise refuse_offset(self.kind, offset, *without)
        # Blocks outside the row would be computed and then masked.
        longest = max(1, num_keys)
        if self.num_global > longest or self.dilation > longest:
            fitting = replace(
                self, num_global=min(self.num_global, longest), dilation=min(self.dilation, longest)
            )
            return fitting.plan(mask, num_queries, num_keys, device)
        reach = min(self.window // 2, -(-num_keys // self.dilation)) * self.dilation
        sentences = find_sentences(mask, num_keys, device, kind=self.kind)
        time = torch.arange(num_keys, device=device)
        is_global = sentences.is_inside & (time - sentences.start < self.num_global)
        block = self.block or fitting_block(2 * reach // self.dilation)
        # A sentence that begins in a block has its global tokens in the block or directly after it.
        right = 0 if offset is not None else max(reach, self.num_global - 1)
        layout = Layout(num_queries, num_keys, block, reach, right, device, step=self.dilation)
        table = is_global if sentences.rows == "packed" else None
        start = sentences.start[:, 0] if sentences.rows == "padded" else None
        pattern = LongformerPattern(table, start, self.num_global, reach, self.dilation)
        if self.num_global == 0:
            return SparsePlan(pattern, layout)
        layout = layout.with_extra(first_tokens(sentences, layout.query[:, 0], self.num_global))
        if sentences.rows == "packed":
            return SparsePlan(
                pattern, layout, WideRows(block, self._targets(sentences, block), is_global)
            )
        targets = first_tokens(sentences, time[:1], self.num_global)
        return SparsePlan(pattern, layout, WideRows(num_keys, targets, is_global, is_shared=True))

    def make_cache(
        self, *, max_length: int, num_rows: int, num_heads: int, head_dim: int, like: Tensor
    ) -> Cache:
        num_in_sight, shape = self.window // 2 * self.dilation + 1, (num_rows, num_heads, head_dim)
        return WindowCache.empty(num_in_sight, max_length=max_length, shape=shape, like=like)

    def step(
        self,
        q: Float[Tensor, "row head 1 head_dim"],
        k: Float[Tensor, "row head 1 head_dim"],
        v: Float[Tensor, "row head 1 head_dim"],
        cache: Cache,
        *,
        bias: Bias | None = None,
    ) -> Float[Tensor, "row head 1 head_dim"]:
        assert isinstance(cache, WindowCache)
        keys, values = cache.append(k, v)
        num_kept = keys.shape[2]
        near = torch.arange(1 - num_kept, 1, device=q.device) % self.dilation == 0
        return FullAttention()(
            q, keys, values, explicit(near[None, None, None]), bias=bias_of_last(bias, num_kept)
        )

    def _targets(self, sentences: Sentences, block: int) -> Int[Tensor, "#batch key_block target"]:
        """For a block, the global tokens of the sentence that reaches into it from before, and all
        global tokens in it or directly after it."""
        first = torch.arange(0, sentences.length, block, device=sentences.start.device)
        before = first_tokens(sentences, first, self.num_global)
        inside = first[:, None] + torch.arange(block + self.num_global - 1, device=first.device)
        inside = torch.where(inside < sentences.length, inside, -1).expand(before.shape[0], -1, -1)
        return in_eights(
            torch.cat([torch.where(before < first[:, None], before, -1), inside], dim=-1)
        )


def first_tokens(
    sentences: Sentences, place: Int[Tensor, " place"], count: int
) -> Int[Tensor, "#batch place count"]:
    """Positions of the first tokens of the sentence at each position; −1 beyond its end."""
    place = place.clamp(max=sentences.length - 1)
    token = sentences.start[:, place, None] + torch.arange(count, device=place.device)
    return torch.where(token < sentences.end[:, place, None], token, -1)


class LongformerMultiHead(MultiHeadAttention):
    """Multi-head attention with a second set of projections: for global queries, and for the keys
    and values that they attend to."""

    kernel: LongformerAttention

    def __init__(
        self,
        dim: int,
        num_heads: int,
        kernel: LongformerAttention,
        *,
        relation: Relation | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(dim, num_heads, kernel, relation=relation, bias=bias)
        self.global_query = nn.Linear(dim, dim, bias=bias)
        self.global_key_value = nn.Linear(dim, 2 * dim, bias=bias)

    def initial_weights(self) -> InitialWeights:
        """The second set of projections starts as a copy of the first, as in the paper."""
        yield from super().initial_weights()
        for own, other, rule in (
            (self.global_query, self.query, xavier(gain=PROJECTION_GAIN)),
            (self.global_key_value, self.key_value, xavier(2, PROJECTION_GAIN)),
        ):
            yield own.weight, copy_of(other.weight, rule)
            if own.bias is not None:
                yield own.bias, copy_of(other.bias, zeros)

    @property
    def own_sequence_only(self) -> tuple[str, str]:
        why = (
            "with attention.kind=longformer its global queries have projections of their own for "
            "one "
            "sequence"
        )
        return why, "attention.kind=longformer 的全局查询有只用于同一序列的投影"

    def _attend_self(
        self,
        x: Float[Tensor, "batch time dim"],
        mask: Mask,
        position: Int[Tensor, "batch time"] | None,
    ) -> Float[Tensor, "batch time dim"]:
        near, far = (
            self.queries_keys_values(x, position, length=x.shape[1]),
            self._global_views(x, position),
        )
        heads = self.kernel.attend(
            near, far, mask, bias=self._bias(near[0]), training=self.training
        )
        return self._merge(heads)

    def weights(
        self,
        x: Float[Tensor, "batch query dim"],
        memory: Float[Tensor, "batch key dim"],
        mask: Mask,
        *,
        position: Int[Tensor, "batch query"] | None = None,
    ) -> Float[Tensor, "batch head query key"]:
        if memory is not x:
            return super().weights(x, memory, mask)
        near, far = (
            self.queries_keys_values(x, position, length=x.shape[1]),
            self._global_views(x, position),
        )
        maps = [self.kernel.weights(q, k, mask, bias=self._bias(q)) for q, k, _ in (near, far)]
        rows = self.kernel.plan(mask.as_given(), x.shape[1], x.shape[1], x.device).wide
        return (
            maps[0]
            if rows is None
            else torch.where(rows.is_wide[:, None, :, None], maps[1], maps[0])
        )

    def step(
        self, x: Float[Tensor, "row 1 dim"], cache: Cache, *, mask: Mask | None = None
    ) -> Float[Tensor, "row 1 dim"]:
        raise AssertionError("refused in a decoder where it is built")

    def _global_views(self, x: Tensor, position: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        k, v = self.global_key_value(x).chunk(2, dim=-1)
        q, k, v = self._split(self.global_query(x)), self._split(k), self._split(v)
        return self._place(q, k, v, position, length=x.shape[1])


def _check_dilation(dilation: int, num_global: int, *, owner: str) -> None:
    """A rule of the kernel and of its settings; `owner` is whose settings the message names."""
    if dilation > 1 and num_global > 0:
        raise SettingsError(
            f"{owner}.dilation={dilation} was given beside {owner}.num_global={num_global}, but a "
            f"dilated window has no global tokens; set {owner}.num_global=0 or {owner}.dilation=1",
            f"同时给出了 {owner}.dilation={dilation} 与 {owner}.num_global={num_global}，"
            f"但空洞窗口没有全局词元；请设 {owner}.num_global=0 或 {owner}.dilation=1",
        )


class Longformer(AttentionKind):
    """A window, and global tokens at the beginning of every sentence, which attend to all and are
    attended to by all; a decoder has no global tokens."""

    kind: Literal["longformer"] = "longformer"
    width: int = Field(512, ge=2, le=1 << 30, multiple_of=2)
    """Two-sided: half of it before the token, half after."""
    num_global: int = Field(1, ge=0, le=1 << 30)
    dilation: int = Field(1, ge=1, le=1 << 30)
    """Attend to every second, third, … token instead of every one, that many times as far."""

    title: ClassVar[Words] = ("Longformer", "Longformer")
    summary: ClassVar[Words] = (
        "A window, and global tokens at the beginning, to and from which all tokens attend.",
        "窗口，外加开头的全局词元：它们关注所有词元，也被所有词元关注。",
    )
    paper: ClassVar[str] = "Beltagy et al. 2020, Longformer: The Long-Document Transformer"
    cost: ClassVar[str] = "4 · n · h · (width + block + num_global · (block + 2)) · d"
    memory: ClassVar[str] = "n · h · (2 · (width + block + num_global · (block + 2)) + 15 · d)"
    masks: ClassVar[frozenset[MaskPart]] = EVERY_MASK - {"causal", "causal_offset"}
    one_sequence_only: ClassVar[bool] = True
    whole_segments: ClassVar[bool] = True
    knows_order: ClassVar[bool] = True

    @model_validator(mode="after")
    def _dilates_without_global(self) -> "Longformer":
        _check_dilation(self.dilation, self.num_global, owner="attention")
        return self

    @classmethod
    def example(cls) -> "Longformer":
        return cls(width=8, num_global=2, dilation=1)

    @property
    def size(self) -> KernelSize:
        return KernelSize(("tokens to either side", "两侧的词元数"), self.width // 2)

    def resize(self, size: int) -> "Longformer":
        return Longformer(width=2 * size, num_global=self.num_global, dilation=1)

    def refuse_role(self, role: Role) -> Words | None:
        if role == "cross":
            return ONE_SEQUENCE
        if role == "decoder" and self.num_global > 0:
            return LOOKS_AHEAD[0] + " (without them, num_global=0, it can stand there)", (
                LOOKS_AHEAD[1] + "（设 num_global=0 去掉它们即可用于该处）"
            )
        return None

    @property
    def cost_terms(self) -> dict[str, int | float]:
        return super().cost_terms | {"block": fitting_block(self.width)}

    def build_kernel(self, *, head_dim: int, dropout_rate: float) -> Kernel:
        return LongformerAttention(self.width, self.num_global, self.dilation, dropout_rate)

    def build_layer(
        self, dim: int, num_heads: int, kernel: Kernel, *, relation: Relation | None
    ) -> MultiHeadAttention:
        if self.num_global == 0:
            return MultiHeadAttention(dim, num_heads, kernel, relation=relation)
        assert isinstance(kernel, LongformerAttention)
        return LongformerMultiHead(dim, num_heads, kernel, relation=relation)
