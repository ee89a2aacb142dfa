"""Computes the attention of one decoding step over a cache that a beam search need not reorder.

A beam search reorders its rows (hypotheses) at every step. Moving keys and values along would copy
the whole cache each time. Here each row writes its keys and values to its own column of the cache,
the slot, and nothing is moved. Instead, a small table of integers is reordered. It says which slot
holds each position of a row's history:

    slot(t, r) = table[t, r]            the slot that holds position t of the history of row r
    output(r)  = Σ_t softmax_t(q(r) · key[t, slot(t, r)] / √head_dim) value[t, slot(t, r)],
                 over t ≤ time

With 2,560 rows, 32 positions, 6 layers of 512 and bf16, a step moves 0.3 MB instead of 1 GB. The
source needs no table, because all rows of a sentence read the same keys and values. Nothing here
depends on a length known to the host, so a step can be recorded as a CUDA graph and replayed
(gpu/graph_replay.py).

Tested against: attention/kernels/full.py over keys gathered by hand; gpu/cache_slot_attention.py is
tested against this file.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.attention.kernels.full import FullAttention
from headwise.attention.masks import explicit
from headwise.gpu import runs_kernels


def attend_through_table(
    q: Float[Tensor, "row dim"],
    new: tuple[Float[Tensor, "row dim"], Float[Tensor, "row dim"]],
    keys: Float[Tensor, "time slot dim"],
    values: Float[Tensor, "time slot dim"],
    *,
    table: Int[Tensor, "time row"],
    time: Int[Tensor, "1"],
    num_heads: int,
) -> Float[Tensor, "row dim"]:
    """The new key and value of each row are written at position `time` of its own slot; the row
    attends to them and to all positions before."""
    if runs_kernels(q):
        from headwise.gpu.cache_slot_attention import attend

        return attend(
            q, new, keys, values, table=table, length=time.expand(len(q)), num_heads=num_heads
        )
    return attend_plainly(q, new, keys, values, table=table, time=time, num_heads=num_heads)


def attend_plainly(
    q: Float[Tensor, "row dim"],
    new: tuple[Float[Tensor, "row dim"], Float[Tensor, "row dim"]],
    keys: Float[Tensor, "time slot dim"],
    values: Float[Tensor, "time slot dim"],
    *,
    table: Int[Tensor, "time row"],
    time: Int[Tensor, "1"],
    num_heads: int,
) -> Float[Tensor, "row dim"]:
    """The same in torch: it gathers the keys and values of every row for all positions of the
    buffer."""
    when = torch.arange(table.shape[0], device=q.device)[:, None]
    own = torch.arange(table.shape[1], device=q.device)
    keys[time, own], values[time, own] = new
    slot = torch.where(when == time, own, table)
    seen = when <= time
    # Slots that were never written may hold anything: a weight of zero does not remove a NaN.
    k, v = (
        store[when, slot].masked_fill(~seen[..., None], 0.0).transpose(0, 1)
        for store in (keys, values)
    )
    return _look(q[:, None], k, v, seen.t()[None], num_heads)[:, 0]


def attend_to_source(
    q: Float[Tensor, "row dim"],
    keys: Float[Tensor, "source_sentence source dim"],
    values: Float[Tensor, "source_sentence source dim"],
    *,
    sentence: Int[Tensor, "sentence"],
    length: Int[Tensor, "sentence"],
    num_heads: int,
) -> Float[Tensor, "row dim"]:
    """All rows of a sentence attend to the first `length` positions of its source."""
    if runs_kernels(q):
        from headwise.gpu.cache_slot_attention import attend_shared

        return attend_shared(q, keys, values, sentence=sentence, length=length, num_heads=num_heads)
    return look_plainly(q, keys, values, sentence=sentence, length=length, num_heads=num_heads)


def look_plainly(
    q: Float[Tensor, "row dim"],
    keys: Float[Tensor, "source_sentence source dim"],
    values: Float[Tensor, "source_sentence source dim"],
    *,
    sentence: Int[Tensor, "sentence"],
    length: Int[Tensor, "sentence"],
    num_heads: int,
) -> Float[Tensor, "row dim"]:
    """The same in torch."""
    seen = torch.arange(keys.shape[1], device=q.device) < length[:, None]
    k, v = (store[sentence].masked_fill(~seen[..., None], 0.0) for store in (keys, values))
    return _look(q.view(len(sentence), -1, q.shape[1]), k, v, seen[:, None], num_heads).reshape(
        q.shape
    )


def _look(q: Tensor, k: Tensor, v: Tensor, seen: Tensor, num_heads: int) -> Tensor:
    heads = [x.unflatten(-1, (num_heads, -1)).transpose(1, 2) for x in (q, k, v)]
    return (
        FullAttention()(heads[0], heads[1], heads[2], explicit(seen[:, None]))
        .transpose(1, 2)
        .flatten(2)
    )
