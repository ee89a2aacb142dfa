"""Attention that also looks up the nearest of many stored keys (Memorizing Transformer).

Beside the keys of its window, a layer has a store: keys and values of tokens that were read long
before. A query looks at the k stored keys that are most like it, and at no others.

    window     local = softmax(q · keys) values                       as every other layer
    lookup     N = the k stored j with the largest q̂ · k̂ⱼ            q̂, k̂: at length one
               far = Σ over j in N of softmaxⱼ(s · q̂ · k̂ⱼ) vⱼ
    mixture    head = g · far + (1 - g) · local                       g = sigmoid(b)

Each head has its own b and s, which are learned. No gradient flows into the store, so that it may
hold many more tokens than a window, and its keys may have been made with older weights: length one
keeps old and new keys comparable. A query that finds nothing (the beginning of a text) has g = 0.

The window of a token ends where its store begins, so that nothing is seen twice. A trained model
shows every token `reach` tokens before it and the `size` tokens before those; in training, where
all tokens of a segment share a memory, the store is what lies before that.

The search is exact: one product and `topk` for each head, in pieces of `PIECE` scores. Weights of
the lookup have no dropout. Wu et al. 2022. Tested against: attention over the whole store written
out; a model without a store at g = 0; steps, segments and one long sequence.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from headwise.attention.cache import Cache, KeyValueCache
from headwise.attention.masks import Mask
from headwise.attention.multi_head import MultiHeadAttention
from headwise.attention.shapes import check_tokens
from headwise.initialization import InitialWeights, constant, zeros

PIECE = 1 << 24
"""Scores of a search that are in memory at once."""
NOWHERE = 1 << 40
"""The distance of a slot that holds nothing."""
SHARPNESS = 10.0
"""What s begins with: about log₂(k² - k) for 32 neighbours (Henry et al. 2020, QK-norm)."""


@dataclass(frozen=True)
class KeyValuePairs:
    """Keys of length one and values of tokens, without gradients."""

    keys: Float[Tensor, "row head slot head_dim"]
    values: Float[Tensor, "row head slot head_dim"]


@dataclass(frozen=True)
class Stored:
    """Pairs in any order, and how many tokens each stands before the next one to be read (1: it was
    the last; NOWHERE: the slot is empty)."""

    pairs: KeyValuePairs
    distance: Int[Tensor, "row slot"]

    @staticmethod
    def nothing(like: Float[Tensor, "row head any head_dim"]) -> "Stored":
        empty = like.detach()[:, :, :0]
        distance = torch.zeros(len(like), 0, dtype=torch.int64, device=like.device)
        return Stored(KeyValuePairs(empty, empty), distance)

    def then(self, new: KeyValuePairs, *, begin: int = 0) -> "Stored":
        """With tokens that follow, of which the next to be read is number `begin`."""
        old, count = self.pairs, new.keys.shape[2]
        keys = torch.cat([old.keys.to(new.keys.dtype), new.keys], dim=2)
        values = torch.cat([old.values.to(new.values.dtype), new.values], dim=2)
        ahead = begin - torch.arange(count, device=keys.device)
        distance = torch.cat([self.distance + begin, ahead.expand(len(keys), count)], dim=1)
        return Stored(KeyValuePairs(keys, values), distance)

    def last(self, count: int) -> "Stored":
        """Of pairs in the order of the text the last ones."""
        pairs = KeyValuePairs(self.pairs.keys[:, :, -count:], self.pairs.values[:, :, -count:])
        return Stored(pairs, self.distance[:, -count:])


@dataclass
class Recall:
    """What a layer may look up while it reads a segment, and what it leaves to be stored."""

    stored: Stored | None
    num_past: int | None = None
    """In training the window of all tokens of the segment begins so many tokens before it, and the
    store ends there; None: every token has its own window."""
    read: KeyValuePairs | None = None
    """The pairs of the segment, once it was read."""


@dataclass(frozen=True)
class Found:
    """The nearest slots of every query."""

    slot: Int[Tensor, "row head query neighbour"]
    is_real: Bool[Tensor, "row head query neighbour"]
    """False where a query sees fewer slots than it may choose."""


class NearestAttention(MultiHeadAttention):
    """A layer of a decoder with a store of `size` pairs beyond a window of `reach` tokens."""

    def __init__(
        self, layer: MultiHeadAttention, *, size: int, neighbours: int, reach: int
    ) -> None:
        """It has the kernel and the positions of a plain layer, and weights of its own."""
        dim = layer.num_heads * layer.head_dim
        super().__init__(dim, layer.num_heads, layer.kernel, relation=layer.relation)
        self.size, self.neighbours, self.reach = size, neighbours, reach
        self.gate = nn.Parameter(torch.empty(self.num_heads))
        self.sharpness = nn.Parameter(torch.empty(self.num_heads))

    def initial_weights(self) -> InitialWeights:
        yield from super().initial_weights()
        yield self.gate, zeros
        yield self.sharpness, constant(SHARPNESS)

    def attend_and_recall(
        self,
        x: Float[Tensor, "batch time dim"],
        past: Float[Tensor, "batch past dim"],
        mask: Mask,
        recall: Recall,
    ) -> Float[Tensor, "batch time dim"]:
        """As `attend_after`, and over what the recall has stored; `recall.read` is filled."""
        num_past, whole = past.shape[1], torch.cat([past.to(x.dtype), x], dim=1)
        check_tokens(x, whole, mask, dim=self.num_heads * self.head_dim)
        k, v = self._keys_values(whole)
        own = k[:, :, num_past:], v[:, :, num_past:]
        q, _, _ = self._place(self.queries(x), *own, None, x.shape[1])
        bias = self._bias(q, offset=num_past)
        local = self.kernel(q, k, v, mask, bias=bias, training=self.training)
        recall.read = self._pairs(*own)
        return self._merge(self._mix(q, local, recall))

    def _attend_self(self, x: Tensor, mask: Mask, position: Tensor | None) -> Tensor:
        q, k, v = self.queries_keys_values(x, position, length=x.shape[1])
        local = self.kernel(q, k, v, mask, bias=self._bias(q), training=self.training)
        return self._merge(self._mix(q, local, Recall(None, read=self._pairs(k, v))))

    def step(
        self, x: Float[Tensor, "row 1 dim"], cache: Cache, *, mask: Mask | None = None
    ) -> Float[Tensor, "row 1 dim"]:
        """One more position after those in the cache: `reach` + `size` of them at most."""
        assert mask is None, "a decoder of one text"
        assert isinstance(cache, KeyValueCache)
        time = cache.length
        position = torch.full(x.shape[:2], time, device=x.device)
        q, k, v = self.queries_keys_values(x, position, length=time + 1)
        keys, values = cache.append(k, v)
        first = max(0, keys.shape[2] - self.reach - 1)
        bias = self._bias(q, offset=keys.shape[2] - first - 1)
        local = self.kernel(q, keys[:, :, first:], values[:, :, first:], Mask(), bias=bias)
        older = self._pairs(keys[:, :, :first], values[:, :, :first])
        stored = Stored.nothing(k).then(older, begin=keys.shape[2] - 1)
        return self._merge(self._mix(q, local, Recall(stored)))

    def weights(
        self,
        x: Float[Tensor, "batch query dim"],
        memory: Float[Tensor, "batch key dim"],
        mask: Mask,
        *,
        position: Int[Tensor, "batch query"] | None = None,
    ) -> Float[Tensor, "batch head query key"]:
        """Of a text that is read at once: the mixture of both maps."""
        local = super().weights(x, memory, mask, position=position)
        q, k, v = self.queries_keys_values(x, position, length=x.shape[1])
        stored, limits = self._candidates(Recall(None, read=self._pairs(k, v)), q)
        found = self._search(q, stored, limits)
        far = torch.zeros_like(local).scatter_add_(
            -1, found.slot, self._lookup_weights(q, stored, found) * found.is_real
        )
        gate = self._gate(found)
        return gate * far + (1 - gate) * local

    def _pairs(
        self,
        k: Float[Tensor, "row head slot head_dim"],
        v: Float[Tensor, "row head slot head_dim"],
    ) -> KeyValuePairs:
        """What is stored of keys and values. The bias of the keys is left out: it adds the same to
        all scores of a softmax, so that nothing teaches it, and noise would turn the keys."""
        k = k.detach()
        if self.key_value.bias is not None:
            bias = self.key_value.bias.detach().chunk(2)[0].view(self.num_heads, 1, -1)
            k = k - bias.to(k.dtype)
        return KeyValuePairs(F.normalize(k, dim=-1), v.detach())

    def _mix(
        self,
        q: Float[Tensor, "row head query head_dim"],
        local: Float[Tensor, "row head query head_dim"],
        recall: Recall,
    ) -> Float[Tensor, "row head query head_dim"]:
        stored, limits = self._candidates(recall, q)
        if stored.distance.shape[1] == 0:
            return local
        found = self._search(q, stored, limits)
        weights = self._lookup_weights(q, stored, found)
        values = _gather(stored.pairs.values, found.slot)
        far = (weights.unsqueeze(-2) @ values.to(weights.dtype)).squeeze(-2)
        gate = self._gate(found)
        return (gate * far + (1 - gate) * local).to(local.dtype)

    def _candidates(self, recall: Recall, q: Tensor) -> tuple[Stored, "Limits"]:
        """All that could be looked up, and the distances at which it may be."""
        stored = Stored.nothing(q) if recall.stored is None else recall.stored
        if recall.num_past is not None:
            return stored, Limits(recall.num_past, recall.num_past + self.size, moving=False)
        if recall.read is not None:  # long segments: the first tokens are far from the last
            stored = stored.then(recall.read)
        return stored, Limits(self.reach, self.reach + self.size, moving=True)

    @torch.no_grad()
    def _search(self, q: Tensor, stored: Stored, limits: "Limits") -> Found:
        unit, keys = F.normalize(q, dim=-1), stored.pairs.keys
        rows, heads, num_queries, _ = q.shape
        count = min(self.neighbours, keys.shape[2])
        piece = max(1, PIECE // (rows * heads * max(1, keys.shape[2])))
        slots, real = [], []
        for begin in range(0, num_queries, piece):
            part = unit[:, :, begin : begin + piece]
            scores = part @ keys.to(part.dtype).transpose(-1, -2)
            visible = limits.visible(stored.distance, begin, part.shape[2])
            best = scores.masked_fill(~visible, -torch.inf).topk(count, dim=-1, sorted=False)
            slots.append(best.indices)
            real.append(best.values > -torch.inf)
        return Found(torch.cat(slots, dim=2), torch.cat(real, dim=2))

    def _lookup_weights(
        self, q: Tensor, stored: Stored, found: Found
    ) -> Float[Tensor, "row head query neighbour"]:
        keys = _gather(stored.pairs.keys, found.slot)
        unit = F.normalize(q, dim=-1) * self.sharpness[:, None, None]
        scores = (keys.to(unit.dtype) @ unit.unsqueeze(-1)).squeeze(-1)
        # Finite: a query that finds nothing has equal weights, and its gate is closed.
        return scores.masked_fill(~found.is_real, torch.finfo(scores.dtype).min).softmax(-1)

    def _gate(self, found: Found) -> Float[Tensor, "row head query 1"]:
        return self.gate.sigmoid()[:, None, None] * found.is_real.any(-1, keepdim=True)


@dataclass(frozen=True)
class Limits:
    """The distances of what may be looked up: more than `above`, at most `upto`."""

    above: int
    upto: int
    moving: bool
    """Whether they are counted from each query, or all from the first one."""

    def visible(
        self, distance: Int[Tensor, "row slot"], begin: int, count: int
    ) -> Bool[Tensor, "row 1 query slot"]:
        """For `count` queries from number `begin` on."""
        far = distance[:, None, None, :]
        if self.moving:
            far = far + torch.arange(begin, begin + count, device=far.device)[:, None]
        return (far > self.above) & (far <= self.upto)


def _gather(
    vectors: Float[Tensor, "row head slot head_dim"],
    slot: Int[Tensor, "row head query neighbour"],
) -> Float[Tensor, "row head query neighbour head_dim"]:
    index = slot.flatten(2).unsqueeze(-1).expand(-1, -1, -1, vectors.shape[-1])
    return vectors.gather(2, index).unflatten(2, slot.shape[2:])
