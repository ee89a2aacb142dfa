"""Computes the attention of global tokens, which attend to all keys of their sentence.

Such a query is called wide. Wide queries are computed block of keys by block of keys:

    for every block of keys J:   queries I(J) = the wide queries whose sentence reaches into J
        scores = q_I k_Jᵀ / √head_dim            a piece of the softmax of each query
    the pieces of a query are joined by their sums:
        output_i = Σ_J Σ_j∈J exp(s_ij − m_i) v_j / Σ_J Σ_j∈J exp(s_ij − m_i)

s_ij is a score and m_i the largest score of query i. One wide query costs as many products as there
are keys, w of them n · w. In a row of many sentences each costs only its own sentence, and the sum
stays n · w. Packed rows need no other shapes: a table of indices lists the queries that a block of
keys serves. If a row is one sentence, all blocks of keys serve the same queries, and the result is
plain attention of a few queries over all keys, in one fused kernel.

Tested against: attention/kernels/full.py under the same mask, written out.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headwise.attention.biases import Bias, bias_at
from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.masks import Mask, explicit
from headwise.attention.precision import leave_half, widen


@dataclass(frozen=True, eq=False)
class WideRows:
    """`target[j]`: the queries that block j of keys serves, −1 for none, none twice; `is_wide`
    marks all of them."""

    block: int
    target: Int[Tensor, "#batch key_block target"]
    is_wide: Bool[Tensor, "#batch query"]
    is_shared: bool = False
    """Whether all keys of a row form one block, and every wide query of the row may attend to all
    of them: a row that is one sentence."""

    def key(self) -> Int[Tensor, "key_block place"]:
        size = self.target.shape[1] * self.block
        return torch.arange(size, device=self.target.device).unflatten(0, (-1, self.block))


def allowed_targets(
    mask: Mask, rows: WideRows, num_keys: int
) -> Bool[Tensor, "#batch #head key_block target place"] | None:
    """The mask at the pairs of wide queries and keys, and False for those that do not exist; None
    if nothing is hidden."""
    if rows.is_shared and len(mask.parts) == 0:
        return None
    num_batch, num_heads = mask.sizes
    device = rows.target.device
    batch = torch.arange(max(num_batch, rows.target.shape[0]), device=device).view(-1, 1, 1, 1, 1)
    head = torch.arange(num_heads, device=device).view(-1, 1, 1, 1)
    query, key = rows.target[:, None, :, :, None], rows.key()[None, None, :, None, :]
    seen = mask.at(
        batch if num_batch > 1 else batch[:1], head, query.clamp(min=0), key.clamp(max=num_keys - 1)
    )
    wide = rows.is_wide[batch if rows.is_wide.shape[0] > 1 else batch[:1], query.clamp(min=0)]
    table = (query >= 0) & wide & (key < num_keys)
    return table if seen is None else table & seen


def attend_widely(
    q: Float[Tensor, "batch head query head_dim"],
    k: Float[Tensor, "batch head key head_dim"],
    v: Float[Tensor, "batch head key value_dim"],
    rows: WideRows,
    allowed: Bool[Tensor, "#batch #head key_block target place"] | None,
    *,
    bias: Bias | None = None,
    dropout_rate: float = 0.0,
) -> Float[Tensor, "batch head query value_dim"]:
    """The output of wide queries; zeros for other queries, and for one without a visible key."""
    if rows.is_shared:
        return _attend_shared(q, k, v, rows, allowed, bias=bias, dropout_rate=dropout_rate)
    assert allowed is not None
    num_batch, num_heads, num_queries, _ = q.shape
    scores = _fetch(leave_half(q), rows) @ _blocks(leave_half(k), rows).transpose(-2, -1)
    scores = widen(scores) / math.sqrt(q.shape[-1])
    if bias is not None:
        batch = torch.arange(num_batch, device=q.device).view(-1, 1, 1, 1, 1)
        head = torch.arange(num_heads, device=q.device).view(-1, 1, 1, 1)
        key = rows.key().clamp(max=k.shape[2] - 1)[None, None, :, None, :]
        added = bias_at(bias, batch, head, rows.target.clamp(min=0)[:, None, :, :, None], key)
        scores, allowed = scores + added, allowed & (added != -torch.inf)
    lowest = torch.finfo(scores.dtype).min
    scores = scores.masked_fill(~allowed, lowest)
    # [batch, head, every piece]: which query each piece belongs to
    index = rows.target.clamp(min=0).flatten(1)[:, None].expand(num_batch, num_heads, -1)
    with torch.no_grad():
        highest = scores.new_full((num_batch, num_heads, num_queries), lowest)
        highest = highest.scatter_reduce(2, index, scores.amax(-1).flatten(2), "amax")
    shift = highest.gather(2, index).view(scores.shape[:-1])
    exponents = (scores - shift[..., None]).exp().masked_fill(~allowed, 0.0)
    total = scores.new_zeros(num_batch, num_heads, num_queries).scatter_add(
        2, index, exponents.sum(-1).flatten(2)
    )
    # Divided before the product: the gradients of the scores then sum to zero in any precision.
    # Divided after it, the rounding of bfloat16 adds a common drift to all keys of a query, and a
    # projection used only by such queries follows it until training fails.
    weights = exponents / torch.where(total > 0, total, 1.0).gather(2, index).view(
        *scores.shape[:-1], 1
    )
    if dropout_rate > 0:
        weights = F.dropout(weights, dropout_rate)
    # Sums over many pieces are accumulated in float32, as inside a product.
    pieces = (weights.to(v.dtype) @ _blocks(v, rows)).to(scores.dtype).flatten(2, 3)
    output = pieces.new_zeros(num_batch, num_heads, num_queries, v.shape[3])
    return output.scatter_add(2, index[..., None].expand(-1, -1, -1, v.shape[3]), pieces).to(
        v.dtype
    )


def _attend_shared(
    q: Float[Tensor, "batch head query head_dim"],
    k: Float[Tensor, "batch head key head_dim"],
    v: Float[Tensor, "batch head key value_dim"],
    rows: WideRows,
    allowed: Bool[Tensor, "#batch #head 1 target key"] | None,
    *,
    bias: Bias | None,
    dropout_rate: float,
) -> Float[Tensor, "batch head query value_dim"]:
    """All wide queries of a row over all its keys."""
    target = rows.target[:, 0].clamp(min=0)
    if bias is not None:
        batch = torch.arange(q.shape[0], device=q.device).view(-1, 1, 1, 1)
        head = torch.arange(q.shape[1], device=q.device).view(1, -1, 1, 1)
        bias = bias_at(
            bias, batch, head, target[:, None, :, None], torch.arange(k.shape[2], device=q.device)
        )
    mask = Mask() if allowed is None else explicit(allowed[:, :, 0])
    found = FusedAttention(dropout_rate)(
        _fetch(q, rows)[:, :, 0], k, v, mask, bias=bias, training=dropout_rate > 0
    )
    # Results of −1 entries are written behind the end and cut off.
    index = torch.where(rows.target[:, 0] < 0, q.shape[2], target)[:, None, :, None].expand_as(
        found
    )
    output = v.new_zeros(*q.shape[:2], q.shape[2] + 1, v.shape[3])
    return output.scatter(2, index, found)[:, :, :-1]


def _fetch(q: Tensor, rows: WideRows) -> Tensor:
    """[batch, head, key_block, target, head_dim]"""
    index = rows.target.clamp(min=0).expand(q.shape[0], -1, -1)
    first = q.shape[2] * torch.arange(q.shape[0], device=q.device)[:, None, None]
    lines = (
        q.transpose(1, 2)
        .reshape(-1, q.shape[1] * q.shape[3])
        .index_select(0, (first + index).flatten())
    )
    return lines.view(*index.shape, q.shape[1], q.shape[3]).permute(0, 3, 1, 2, 4)


def _blocks(x: Tensor, rows: WideRows) -> Tensor:
    """[batch, head, key_block, place, width]"""
    size = rows.target.shape[1] * rows.block
    return F.pad(x, (0, 0, 0, size - x.shape[2])).unflatten(2, (-1, rows.block))
