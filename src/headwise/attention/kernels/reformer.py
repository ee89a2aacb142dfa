"""Reformer: a query attends only to keys in the same bucket of a locality-sensitive hash.

    bucket(x) = arg max [x R; −x R]         R: fixed random directions; each of the `num_rounds`
                                            hashes has its own
    keys      = queries of unit length (one projection for both)
    output_i  = softmax of q_i · k_j / √head_dim over the keys that share a bucket with i in any
                round, and over i itself only if there is no other

Kitaev et al. 2020. The hash sends similar vectors to the same bucket. Tokens are sorted by
(sentence, bucket, position in the sentence); in this order each token attends to `window` tokens on
either side inside its bucket (causal: before it). The published form cuts the sorted order into
chunks and attends to the token's own chunk and the previous one. Where these chunks begin depends
on later tokens and on other sentences of the row, so the result is neither causal nor the same
packed and alone. A window around each token does not depend on them: the distance of two tokens in
a bucket is given by the tokens between them.

Rounds are combined exactly: each yields a sum of exponentials and of values times exponentials,
shifted by its largest score, and a key found in c rounds counts 1 / c in each, so the whole is one
softmax over all keys found. sparse/lsh_buckets.py finds these keys. There may be more buckets than
tokens: tokens are then often alone in their bucket and attend to themselves. Padding has no
queries.

Cost per head, n tokens, r rounds, w = window, d = head_dim: 12 n r w d operations (causal 8),
n r (8 d + 15 w) intermediate numbers; sorting n log n. Full attention takes 4 n² d.

Tested against: the paper's equations position by position; reformer-pytorch where its chunks begin
between buckets; transformers' hash; with one bucket, full attention of shared queries and keys.
"""

import math
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from headwise.attention.biases import Bias
from headwise.attention.cache import Cache, KeyValueCache
from headwise.attention.capabilities import (
    ONE_SEQUENCE,
    ROW_MASKS,
    AttentionKind,
    KernelSize,
    MaskPart,
    Role,
)
from headwise.attention.masks import Mask
from headwise.attention.multi_head import Kernel, MultiHeadAttention, Need, Relation
from headwise.attention.normalizers import masked_softmax
from headwise.attention.packed_segments import read_segments
from headwise.attention.precision import widen
from headwise.attention.refusals import only_self_attention, refuse_bias, refuse_offset
from headwise.attention.segment_order import (
    OrderedMask,
    invert,
    order_mask,
    prepare_order,
)
from headwise.attention.shapes import check_shapes, empty_output, empty_weights, is_empty
from headwise.attention.shared_query_key import SharedQueryKeyAttention
from headwise.attention.size_checks import BoundedSize, check_sizes
from headwise.attention.sparse.lsh_buckets import PADDING, find_neighbours
from headwise.randomness import torch_generator
from headwise.settings.kind import Words

ALONE = -1e5
"""The score of a token with itself: negligible beside any other score, decisive if there is
none."""
LEAST = -80.0
"""Scores further below the largest one are clipped: e⁻⁸⁰ is negligible beside 1, and still a normal
number in fp32."""
EXACT_ROWS = 512
"""Number of queries whose scores with all keys are formed at once, in exact attention."""
MAX_ROUNDS = 1024
"""An upper bound that no recipe needs."""


class ReformerAttention(nn.Module):
    """For self-attention; `k` must be `q` (it is an argument so that the signature is that of a
    kernel)."""

    keys_are_queries = True
    """Queries and keys must stay the same vectors: positions that mark them differently would
    change their hashes."""
    rotations: Tensor

    def __init__(
        self,
        head_dim: int,
        *,
        num_buckets: int,
        num_rounds: int,
        window: int,
        dropout_rate: float = 0.0,
    ) -> None:
        super().__init__()
        check_sizes(
            "ReformerAttention",
            BoundedSize("head_dim", head_dim),
            BoundedSize("num_rounds", num_rounds, most=MAX_ROUNDS),
            BoundedSize("window", window),
        )
        if num_buckets != 1:  # one bucket is full attention of shared queries and keys
            check_sizes(
                "ReformerAttention", BoundedSize("num_buckets", num_buckets, least=2, is_even=True)
            )
        self.num_buckets, self.window, self.dropout_rate = num_buckets, window, dropout_rate
        shape = (num_rounds, head_dim, num_buckets // 2)
        cpu = torch.device("cpu")
        self.register_buffer(
            "rotations", torch.randn(shape, generator=torch_generator("reformer"), device=cpu)
        )

    @property
    def head_dim(self) -> int:
        return self.rotations.shape[1]

    def prepare(self, mask: Mask, num_queries: int, num_keys: int, device: torch.device) -> Mask:
        return prepare_order(mask, num_queries, num_keys, kind="reformer")

    def forward(
        self,
        q: Float[Tensor, "batch head time head_dim"],
        k: Float[Tensor, "batch head key head_dim"],
        v: Float[Tensor, "batch head key value_dim"],
        mask: Mask,
        *,
        bias: Bias | None = None,
        training: bool = False,
    ) -> Float[Tensor, "batch head time value_dim"]:
        check_shapes(q, k, v)
        if is_empty(q, k):
            return empty_output(q, k, v)
        lined = self._read(q, k, mask, bias)
        return self._attend(q, k, v, lined, self.dropout_rate if training else 0.0)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, lined: OrderedMask, rate: float) -> Tensor:
        """All rounds at once, along an axis beside the heads: the compiled graph does not depend on
        the number of rounds."""
        with torch.autocast(q.device.type, enabled=False):
            met = find_neighbours(
                self._runs(q, lined), window=self.window, is_causal=lined.offset is not None
            )
            inputs = (widen(q) / math.sqrt(q.shape[-1]), _unit_keys(k), widen(v))
            own, *seen = (met.sort(x) for x in inputs)
            keys, values = (met.with_neighbours(x) for x in seen)
            (here, others), itself = met.compare(own.dtype), met.itself(own)
            # Sums and products instead of masked_fill, which takes ten times as long on a CPU; in
            # place, because each intermediate result is as large as all scores.
            hidden = torch.finfo(own.dtype).max / 4
            scores = (
                (own @ keys.mT).mul_(1 - itself).add_(ALONE * itself).add_(here - 1, alpha=hidden)
            )
            largest = scores.detach().amax(-1, keepdim=True)
            # exp is thirty times as slow where its result is a denormal number; a key found in
            # several rounds counts once.
            parts = F.threshold(scores.sub_(largest), LEAST, LEAST).exp_() * here.div_(1 + others)
            kept = F.dropout(parts, rate) if rate > 0 else parts
            found, total = met.unsort(kept @ values), met.unsort(parts.sum(-1, keepdim=True))
            scale = met.unsort(largest)
            scale = (scale - scale.amax(2, keepdim=True)).exp()
            # A query that found any key has at least one part of 1 / MAX_ROUNDS.
            total = (scale * total).sum(2).clamp(min=0.5 / MAX_ROUNDS)
            return ((scale * found).sum(2) / total).to(v.dtype)

    def _buckets(
        self, q: Float[Tensor, "batch head time head_dim"]
    ) -> Int[Tensor, "batch head round time"]:
        if self.num_buckets == 1:
            return torch.zeros(
                *q.shape[:2], len(self.rotations), q.shape[2], dtype=torch.long, device=q.device
            )
        turned = torch.einsum("bhtd,rdm->bhrtm", widen(q), widen(self.rotations).to(widen(q).dtype))
        return torch.cat([turned, -turned], dim=-1).argmax(-1)

    def _visible(self, lined: OrderedMask, q: Tensor) -> Bool[Tensor, "batch time"]:
        everyone = torch.ones(q.shape[0], q.shape[2], dtype=torch.bool, device=q.device)
        for query, key in read_segments(lined.mask):  # one token, one sentence
            everyone = everyone & (query == key)
        return everyone if lined.visible is None else everyone & lined.visible

    def _runs(self, q: Tensor, lined: OrderedMask) -> Int[Tensor, "batch head round time"]:
        """Sentence and bucket as one number; padding comes after all others."""
        buckets = self._buckets(q)
        if lined.line is not None:
            buckets = buckets + lined.line.sentence(q.shape[2])[:, None, None] * self.num_buckets
        return buckets.masked_fill(~self._visible(lined, q)[:, None, None], PADDING)

    def attend_exactly(
        self,
        q: Float[Tensor, "batch head time head_dim"],
        v: Float[Tensor, "batch head time value_dim"],
        *,
        is_causal: bool,
    ) -> Float[Tensor, "batch head time value_dim"]:
        """The attention that the hashes approximate."""
        return attend_among_queries(q, v, is_causal=is_causal)

    def weights(
        self,
        q: Float[Tensor, "batch head time head_dim"],
        k: Float[Tensor, "batch head key head_dim"],
        mask: Mask,
        *,
        bias: Bias | None = None,
    ) -> Float[Tensor, "batch head time time"]:
        """The softmax over all keys found in any round, as a table."""
        if is_empty(q, k):
            return empty_weights(q, k)
        lined = self._read(q, k, mask, bias)
        run, is_causal = self._runs(q, lined), lined.offset is not None
        place = invert(run.argsort(dim=-1, stable=True))
        distance = place[..., :, None] - place[..., None, :]
        near = (
            (distance >= 0) & (distance <= self.window)
            if is_causal
            else distance.abs() <= self.window
        )
        same = (run[..., :, None] == run[..., None, :]) & (run != PADDING)[..., None]
        return _scores_to_weights(
            q, k, (same & near).any(2), torch.eye(q.shape[2], dtype=torch.bool, device=q.device)
        )

    def _read(self, q: Tensor, k: Tensor, mask: Mask, bias: Bias | None) -> OrderedMask:
        refuse_bias(bias, kind="reformer")
        lined = order_mask(mask, q.shape[2], k.shape[2], kind="reformer")
        if lined.offset not in (None, 0):
            raise refuse_offset("reformer", lined.offset)
        only_self_attention("reformer", q.shape[2], k.shape[2])
        return lined

    def make_cache(
        self, *, max_length: int, num_rows: int, num_heads: int, head_dim: int, like: Tensor
    ) -> Cache:
        return KeyValueCache.empty(
            max_length=max_length,
            num_rows=num_rows,
            num_heads=num_heads,
            head_dim=head_dim,
            like=like,
        )

    def step(
        self,
        q: Float[Tensor, "row head 1 head_dim"],
        k: Float[Tensor, "row head 1 head_dim"],
        v: Float[Tensor, "row head 1 head_dim"],
        cache: Cache,
        *,
        bias: Bias | None = None,
    ) -> Float[Tensor, "row head 1 head_dim"]:
        """All keys so far are hashed again: this is cheap beside the products of a layer, and no
        stored bucket can become stale."""
        refuse_bias(bias, kind="reformer")
        assert isinstance(cache, KeyValueCache)
        keys, values = cache.append(k, v)
        same = self._buckets(keys) == self._buckets(q)
        later = same.long().flip(-1).cumsum(-1).flip(-1) - same.long()
        met = (same & (later <= self.window)).any(2)[:, :, None]
        itself = torch.arange(keys.shape[2], device=q.device) == keys.shape[2] - 1
        return _scores_to_weights(q, keys, met, itself) @ values


def _scores_to_weights(q: Tensor, k: Tensor, met: Tensor, itself: Tensor) -> Tensor:
    scores = widen(q) @ _unit_keys(k).mT / math.sqrt(q.shape[-1])
    return masked_softmax(scores.masked_fill(itself, ALONE), met).to(q.dtype)


def _unit_keys(k: Tensor) -> Tensor:
    """Scaled to unit length; in float16 a length could overflow, and the smallest divisor would be
    zero."""
    return F.normalize(widen(k), dim=-1)


def attend_among_queries(
    q: Float[Tensor, "batch head time head_dim"],
    v: Float[Tensor, "batch head time value_dim"],
    *,
    is_causal: bool,
) -> Float[Tensor, "batch head time value_dim"]:
    """Exact attention as Reformer defines it: keys are the queries at unit length, and a token
    attends to itself only if there is no other."""
    length = q.shape[2]
    keys, place = F.normalize(q, dim=-1).mT, torch.arange(length, device=q.device)
    parts = []
    for start in range(0, length, EXACT_ROWS):
        mine = place[start : start + EXACT_ROWS, None]
        scores = q[:, :, start : start + EXACT_ROWS] @ keys / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(mine == place, ALONE)
        if is_causal:
            scores = scores.masked_fill(place > mine, -torch.inf)
        parts.append(scores.softmax(-1) @ v)
    return torch.cat(parts, dim=2)


class Reformer(AttentionKind):
    """A token attends to tokens in the same hash bucket; queries and keys share one projection."""

    kind: Literal["reformer"] = "reformer"
    num_buckets: int = Field(default=16, ge=2, le=65536, multiple_of=2)
    """Number of buckets of each hash; by default chosen so that a bucket has about `bucket_size`
    tokens."""
    num_rounds: int = Field(default=4, ge=1, le=64)
    """Number of hashes; twice as many come about twice as near to full attention."""
    bucket_size: int = Field(default=64, ge=1, le=65536)
    """Number of tokens on either side in the same bucket that a token attends to."""

    title: ClassVar[Words] = ("Reformer (hashed)", "Reformer（哈希）")
    summary: ClassVar[Words] = (
        "A token attends to tokens in the same hash bucket, which are similar to it.",
        "词元只关注落入同一哈希桶的词元：相似的词元聚在一起。",
    )
    paper: ClassVar[str] = "Kitaev et al. 2020, Reformer: The Efficient Transformer"
    cost: ClassVar[str] = "n · h · num_rounds · (12 · bucket_size + num_buckets) · d"
    memory: ClassVar[str] = "n · h · num_rounds · (6 · bucket_size + 11 · d)"
    masks: ClassVar[frozenset[MaskPart]] = ROW_MASKS - {"causal_offset"}
    compared_with: ClassVar[Words] = (
        "exact attention of shared queries and keys, which it approximates",
        "它所近似的、共用查询和键的精确注意力",
    )
    one_sequence_only: ClassVar[bool] = True
    knows_order: ClassVar[bool] = True
    is_continuous: ClassVar[bool] = False

    @classmethod
    def example(cls) -> "Reformer":
        return cls(num_buckets=8, num_rounds=2, bucket_size=8)

    @property
    def size(self) -> KernelSize:
        return KernelSize(("tokens attended to in a bucket", "桶内关注的词元数"), self.bucket_size)

    def resize(self, size: int) -> "Reformer":
        return self.model_copy(update={"bucket_size": size})

    @property
    def takes(self) -> frozenset[Need]:
        return frozenset(("rotations",))

    def refuse_role(self, role: Role) -> Words | None:
        return ONE_SEQUENCE if role == "cross" else None

    def refuse_rows(self, num_tokens: int, *, key: str) -> Words | None:
        if self.num_buckets <= num_tokens:
            return None
        fitting = num_tokens // 2 // 2 * 2 or 2
        return (
            f"{key}.num_buckets is {self.num_buckets}, but rows have {num_tokens} tokens, most of "
            "which "
            "would be alone in their bucket and see only themselves; set "
            f"{key}.num_buckets to {fitting} or less",
            f"{key}.num_buckets 为 {self.num_buckets}，而每行只有 {num_tokens} 个词元，"
            "多数会独占一桶、只看到自己；"
            f"请将 {key}.num_buckets 设为 {fitting} 或更小",
        )

    def build_kernel(self, *, head_dim: int, dropout_rate: float) -> Kernel:
        return ReformerAttention(
            head_dim,
            num_buckets=self.num_buckets,
            num_rounds=self.num_rounds,
            window=self.bucket_size,
            dropout_rate=dropout_rate,
        )

    def build_layer(
        self, dim: int, num_heads: int, kernel: Kernel, *, relation: Relation | None
    ) -> MultiHeadAttention:
        assert isinstance(kernel, ReformerAttention)
        return SharedQueryKeyAttention(dim, num_heads, kernel, kind=self.kind, relation=relation)
