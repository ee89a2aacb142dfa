"""Multi-head attention: several attentions side by side, each with its own queries, keys and
values.

    head_i = attention(x W_q[i], m W_k[i], m W_v[i])      from x to the memory m; m = x in
    output = concat(head_1 … head_h) W_o                  self-attention

Vaswani et al. 2017, section 3.2.2. This module owns the weights and nothing else. The kernel it is
given computes the attention of the heads; the relation it is given encodes positions. One weighted
mean can express one relation between tokens; h of them express h relations at the same cost.

Tested against: torch.nn.MultiheadAttention and transformers' MarianAttention with copied weights.
"""

from typing import Literal, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.attention.biases import Bias, DistanceBias
from headwise.attention.cache import Cache, KeyValueCache
from headwise.attention.masks import Mask
from headwise.attention.ragged_cache import BlockPlace, RaggedCache
from headwise.attention.shapes import check_heads, check_tokens
from headwise.errors import UsageError
from headwise.initialization import PROJECTION_GAIN, InitialWeights, initial_linear, xavier


@runtime_checkable
class Kernel(Protocol):
    """How attention is computed. `prepare` may evaluate a mask once for all layers of a stack."""

    def prepare(
        self, mask: Mask, num_queries: int, num_keys: int, device: torch.device
    ) -> Mask: ...

    def __call__(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        k: Float[Tensor, "batch head key head_dim"],
        v: Float[Tensor, "batch head key value_dim"],
        mask: Mask,
        *,
        bias: Bias | None = None,
        training: bool = False,
    ) -> Float[Tensor, "batch head query value_dim"]: ...

    def weights(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        k: Float[Tensor, "batch head key head_dim"],
        mask: Mask,
        *,
        bias: Bias | None = None,
    ) -> Float[Tensor, "batch head query key"]:
        """The map for inspection: the weights that give the output, computed or implied (output =
        weights v)."""
        ...


@runtime_checkable
class Stepping(Protocol):
    """A kernel with its own state while decoding (a window, a sum); other kernels use a cache of
    all keys and values."""

    def make_cache(
        self, *, max_length: int, num_rows: int, num_heads: int, head_dim: int, like: Tensor
    ) -> Cache: ...

    def step(
        self,
        q: Float[Tensor, "row head 1 head_dim"],
        k: Float[Tensor, "row head 1 head_dim"],
        v: Float[Tensor, "row head 1 head_dim"],
        cache: Cache,
        *,
        bias: Bias | None = None,
    ) -> Float[Tensor, "row head 1 head_dim"]:
        """Add this position to the state, then attend to all positions in it, the new one included.
        A bias covers all positions so far."""
        ...


Need = Literal["rotations", "views", "distances", "pairs", "weights"]
"""Rotations of queries and keys; vectors added to queries, keys and values; a bias by distance; a
bias for every pair; or a bias with a part in the mean of the values."""


@runtime_checkable
class Standing(Protocol):
    """A kernel that depends on the positions of the queries; for others positions are part of x
    only."""

    def stand_at(self, position: Int[Tensor, "#batch query"]) -> Kernel:
        """The kernel for queries at this position. By default, positions are the order of the
        queries, as in training."""
        ...


@runtime_checkable
class Fitted(Protocol):
    """A kernel with learned weights for vectors of one width; other kernels take any width."""

    @property
    def head_dim(self) -> int | None:
        """The width of queries it was built for; None: any."""
        ...


@runtime_checkable
class Relation(Protocol):
    """How self-attention learns about positions beyond what x contains (folder positions/)."""

    @property
    def kind(self) -> str:
        """Its name in a recipe."""
        ...

    @property
    def needs(self) -> Need:
        """What a kernel must support for it."""
        ...

    def encode(
        self,
        q: Float[Tensor, "batch head time head_dim"],
        k: Float[Tensor, "batch head time head_dim"],
        v: Float[Tensor, "batch head time head_dim"],
        position: Int[Tensor, "batch time"],
        *,
        length: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values with their positions encoded; keys and values are cached in this
        form. All positions are below `length`."""
        ...

    def bias(
        self, q: Float[Tensor, "batch head query head_dim"], *, num_keys: int, offset: int
    ) -> Bias | None:
        """Added to the scores; `offset` keys precede the first query. A packed row counts as one
        sequence: only distances inside a sentence matter."""
        ...


KeysValues = tuple[
    Float[Tensor, "batch head key head_dim"], Float[Tensor, "batch head key head_dim"]
]


class MultiHeadAttention(nn.Module):
    """Weights of multi-head attention; `forward` attends from `x` to `memory`."""

    def __init__(
        self,
        dim: int,
        num_heads: int,
        kernel: Kernel,
        *,
        relation: Relation | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        check_heads(dim, num_heads)
        self.num_heads, self.head_dim = num_heads, dim // num_heads
        self.kernel = kernel
        self.relation = relation
        self.query = nn.Linear(dim, dim, bias=bias)
        self.key_value = nn.Linear(dim, 2 * dim, bias=bias)
        self.output = nn.Linear(dim, dim, bias=bias)

    def initial_weights(self) -> InitialWeights:
        yield from initial_linear(self.query, xavier(gain=PROJECTION_GAIN))
        yield from initial_linear(self.key_value, xavier(2, PROJECTION_GAIN))
        yield from initial_linear(self.output, xavier())

    @property
    def is_plain(self) -> bool:
        """Whether it is exactly the attention of the paper, which other code may compute in its own
        way."""
        is_plain = getattr(self.kernel, "is_plain", False)
        return type(self) is MultiHeadAttention and is_plain and self.relation is None

    @property
    def own_sequence_only(self) -> tuple[str, str] | None:
        """Why it cannot attend to another sequence, in English and Chinese: one of its parts would
        silently be left out there."""
        if self.relation is None:
            return None
        kind = self.relation.kind
        return (
            f"position.kind={kind} encodes positions inside one sequence",
            f"position.kind={kind} 编码的是同一序列内的位置",
        )

    def forward(
        self,
        x: Float[Tensor, "batch query dim"],
        memory: Float[Tensor, "batch key dim"],
        mask: Mask,
        *,
        position: Int[Tensor, "batch query"] | None = None,
    ) -> Float[Tensor, "batch query dim"]:
        """`position` is the index of each token in its sentence; needed only in self-attention with
        a relation."""
        check_tokens(x, memory, mask, dim=self.num_heads * self.head_dim)
        if memory is x:
            return self._attend_self(x, mask, position)
        return self.attend(x, self.keys_values(memory), mask)

    def _attend_self(
        self,
        x: Float[Tensor, "batch time dim"],
        mask: Mask,
        position: Int[Tensor, "batch time"] | None,
    ) -> Float[Tensor, "batch time dim"]:
        q, k, v = self.queries_keys_values(x, position, length=x.shape[1])
        return self._merge(self.kernel(q, k, v, mask, bias=self._bias(q), training=self.training))

    def attend_after(
        self,
        x: Float[Tensor, "batch time dim"],
        past: Float[Tensor, "batch past dim"],
        mask: Mask,
    ) -> Float[Tensor, "batch time dim"]:
        """Self-attention over tokens read before and over x, which follows them; for positions that
        leave keys and values as they are (models/memory_check.py)."""
        num_past, whole = past.shape[1], torch.cat([past.to(x.dtype), x], dim=1)
        check_tokens(x, whole, mask, dim=self.num_heads * self.head_dim)
        k, v = self._keys_values(whole)
        own = k[:, :, num_past:], v[:, :, num_past:]
        q, _, _ = self._place(self.queries(x), *own, None, x.shape[1])
        bias = self._bias(q, offset=num_past)
        return self._merge(self.kernel(q, k, v, mask, bias=bias, training=self.training))

    def queries_keys_values(
        self,
        x: Float[Tensor, "batch time dim"],
        position: Int[Tensor, "batch time"] | None,
        *,
        length: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of self-attention with their positions encoded; positions are
        below `length`."""
        return self._place(*self.project(x), position, length)

    def _place(
        self, q: Tensor, k: Tensor, v: Tensor, position: Tensor | None, length: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        if self.relation is None:
            return q, k, v
        if position is None:
            position = torch.arange(q.shape[2], device=q.device).expand(q.shape[0], -1)
        return self.relation.encode(q, k, v, position, length=length)

    def _bias(
        self, q: Float[Tensor, "batch head query head_dim"], *, offset: int = 0
    ) -> Bias | None:
        """The bias of self-attention, whose last query is at the last key."""
        if self.relation is None or q.shape[2] == 0:  # without a query there are no distances
            return None
        return self.relation.bias(q, num_keys=offset + q.shape[2], offset=offset)

    def project(self, x: Float[Tensor, "batch time dim"]) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of the same tokens, each [batch, head, time, head_dim]."""
        if not torch.is_grad_enabled():
            return self.queries(x), *self._keys_values(x)
        # In training one product for all three: x is read once, and its gradient is one product
        # instead of a sum of two.
        weight = torch.cat([self.query.weight, self.key_value.weight])
        bias = (
            None if self.query.bias is None else torch.cat([self.query.bias, self.key_value.bias])
        )
        q, k, v = map(self._split, F.linear(x, weight, bias).chunk(3, dim=-1))
        return q, k, v

    def keys_values(self, memory: Float[Tensor, "batch key dim"]) -> KeysValues:
        """Keys and values of another sequence, to be cached: computed once per source sentence."""
        if (why := self.own_sequence_only) is not None:
            raise UsageError(
                f"attention was asked to attend to another sequence, and {why[0]}; give the same "
                "tensor as x and memory, or use a kernel for two sequences and no relation",
                f"注意力被要求关注另一个序列，而{why[1]}；请让 x 与 memory 为同一张量，"
                "或使用可用于两个序列且不带位置关系的内核",
            )
        return self._keys_values(memory)

    def _keys_values(self, memory: Float[Tensor, "batch key dim"]) -> KeysValues:
        k, v = self.key_value(memory).chunk(2, dim=-1)
        return self._split(k), self._split(v)

    def attend(
        self,
        x: Float[Tensor, "batch query dim"],
        keys_values: KeysValues,
        mask: Mask,
        *,
        time: int | None = None,
    ) -> Float[Tensor, "batch query dim"]:
        """`time`: the common position of all of x (hypotheses of one step); None: consecutive
        positions."""
        kernel = self._kernel_at(time, x)
        return self._merge(kernel(self.queries(x), *keys_values, mask, training=self.training))

    def queries(self, x: Float[Tensor, "batch query dim"]) -> Tensor:
        """The queries of every head, [batch, head, query, head_dim]."""
        return self._split(self.query(x))

    def _kernel_at(self, time: int | None, x: Tensor) -> Kernel:
        if time is None or not isinstance(self.kernel, Standing):
            return self.kernel
        return self.kernel.stand_at(torch.full((1, x.shape[1]), time, device=x.device))

    def make_cache(self, *, max_length: int, num_rows: int, like: Tensor) -> Cache:
        """An empty cache for `step`."""
        make = self.kernel.make_cache if isinstance(self.kernel, Stepping) else KeyValueCache.empty
        heads, head_dim = self.num_heads, self.head_dim
        return make(
            max_length=max_length, num_rows=num_rows, num_heads=heads, head_dim=head_dim, like=like
        )

    def step(
        self, x: Float[Tensor, "row 1 dim"], cache: Cache, *, mask: Mask | None = None
    ) -> Float[Tensor, "row 1 dim"]:
        """One more position of causal self-attention: attend to everything before, and cache this
        position. `mask` hides what other sentences have cached."""
        time = cache.length
        position = None if self.relation is None else torch.full(x.shape[:2], time, device=x.device)
        q, k, v = self.queries_keys_values(x, position, length=time + 1)
        bias = self._bias(q, offset=time)
        if isinstance(self.kernel, Stepping):
            assert mask is None, "a kernel with a memory of its own decides itself what it sees"
            return self._merge(self.kernel.step(q, k, v, cache, bias=bias))
        assert isinstance(cache, KeyValueCache)
        return self._merge(
            self.kernel(q, *cache.append(k, v), Mask() if mask is None else mask, bias=bias)
        )

    def extend(
        self, x: Float[Tensor, "row step dim"], cache: RaggedCache, place: BlockPlace
    ) -> Float[Tensor, "row step dim"]:
        """Several more positions of causal self-attention, each row after its own length."""
        q, k, v = self.queries_keys_values(x, place.position, length=place.num_keys)
        keys, values = cache.write(k, v, place)
        return self._merge(
            self.kernel(q, keys, values, place.mask, bias=self._bias_of_rows(q, place))
        )

    def _bias_of_rows(
        self, q: Float[Tensor, "row head step head_dim"], place: BlockPlace
    ) -> Float[Tensor, "row head step key"] | None:
        """The bias of rows that differ in length: each distance is looked up for itself."""
        offset = place.num_keys - q.shape[2]
        bias = self._bias(q, offset=offset)
        if bias is None:
            return None
        assert isinstance(bias, DistanceBias), "VerifyingDecoder.supports"
        head = torch.arange(q.shape[1], device=q.device)[None, :, None, None]
        key = torch.arange(place.num_keys, device=q.device)
        query = (place.position - offset)[:, None, :, None]
        return bias.at(head, head, query, key)

    def weights(
        self,
        x: Float[Tensor, "batch query dim"],
        memory: Float[Tensor, "batch key dim"],
        mask: Mask,
        *,
        position: Int[Tensor, "batch query"] | None = None,
    ) -> Float[Tensor, "batch head query key"]:
        """The attention map for inspection; the fast path never stores it (see taps.py)."""
        check_tokens(x, memory, mask, dim=self.num_heads * self.head_dim)
        if memory is not x:
            return self.weights_over(x, self.keys_values(memory), mask)
        q, k, _ = self.queries_keys_values(x, position, length=x.shape[1])
        return self.kernel.weights(q, k, mask, bias=self._bias(q))

    def weights_over(
        self,
        x: Float[Tensor, "batch query dim"],
        keys_values: KeysValues,
        mask: Mask,
        *,
        time: int | None = None,
    ) -> Float[Tensor, "batch head query key"]:
        """The same map over another sequence whose keys and values are cached already; `time` as
        for `attend`."""
        return self._kernel_at(time, x).weights(self.queries(x), keys_values[0], mask)

    def _split(
        self, x: Float[Tensor, "batch time dim"]
    ) -> Float[Tensor, "batch head time head_dim"]:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def _merge(
        self, heads: Float[Tensor, "batch head time head_dim"]
    ) -> Float[Tensor, "batch time dim"]:
        return self.output(heads.transpose(1, 2).flatten(2))
