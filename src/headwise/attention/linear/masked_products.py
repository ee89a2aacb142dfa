"""Computes (A Bᵀ ∘ M) V, a product of matrices under a mask M, in linear time. Linear attention,
Performer and Linformer need this sum.

    out_i = Σ_j M_ij (a_i · b_j) v_j          M: tokens of one sentence, causal or not

Without a mask the product is bracketed as A (Bᵀ V), and nothing of size n × n is formed. With a
mask, the sorted tokens (segment_order.py) are cut into chunks of C. Inside a chunk the C × C table
is formed and masked. Of the other chunks only the sums Bᵀ V are needed, one [m, e] matrix per
chunk, and of these only the part of the sentence that crosses the border, because a sentence is
contiguous:

    state_c = Σ_{c' < c} [run at the end of c' = run at the end of c − 1] U_c'
    U_c'    = Σ_{j in c', same run as its end} b_j v_jᵀ

and the mirror image for sentences that continue to the right. The sums over chunks are products
with 0/1 tables of at most GROUP × GROUP, and groups of groups above that. So everything is a matrix
product. No sum is computed by subtracting another one, which would leave the rounding error of a
large masked number. The cost is linear:

    operations per head    n (2 C (m + e) + 4 m e), twice the second part if not causal
    bytes per head         n (2 m + 2 e) read and written, n m e / C of states, n C of tables

Rows no longer than a chunk use the masked table alone, which is the cheapest form for them.
Accumulators are fp32 (fp64 for fp64); operands keep their dtype.

Tested against: the dense formula, outputs and gradients, in every law with chunks of 2.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from headwise.attention.precision import widen
from headwise.attention.segment_order import OrderedMask, put_in_order, take_queries

CHUNK = 128
GROUP = 32


def masked_products(
    a: Float[Tensor, "batch head query features"],
    b: Float[Tensor, "#batch #head key features"],
    v: Float[Tensor, "#batch #head key size"],
    lined: OrderedMask,
    *,
    chunk: int = CHUNK,
) -> Float[Tensor, "batch head query size"]:
    """Σ_j M_ij (a_i · b_j) v_j, in fp32 or fp64."""
    num_queries, num_keys = a.shape[2], b.shape[2]
    if lined.visible is not None:
        b = b.masked_fill(~lined.visible[:, None, :, None], 0.0)
    if lined.line is None and lined.offset is None:
        return widen(a @ (b.transpose(-2, -1) @ v))
    if max(num_queries, num_keys) <= chunk:
        table = lined.dense(num_queries, num_keys, a.device)
        return widen((a @ b.transpose(-2, -1)).masked_fill(~table, 0.0) @ v)
    is_causal = lined.offset is not None
    if lined.line is not None:
        line = lined.line
        a, b, v = (
            put_in_order(line, a, None),
            put_in_order(line, None, b),
            put_in_order(line, None, v),
        )
        return take_queries(
            line, _by_chunks(a, b, v, line.run, is_causal=is_causal, chunk=chunk), num_queries
        )
    assert lined.offset is not None
    # Shifted so that query and key at the same place see each other, then padded to the same
    # length.
    before, behind = max(lined.offset, 0), max(-lined.offset, 0)
    length = max(num_queries + before, num_keys + behind)
    a = F.pad(a, (0, 0, before, length - num_queries - before))
    b, v = (F.pad(x, (0, 0, behind, length - num_keys - behind)) for x in (b, v))
    return _by_chunks(a, b, v, None, is_causal=True, chunk=chunk)[
        :, :, before : before + num_queries
    ]


def _by_chunks(
    a: Tensor,
    b: Tensor,
    v: Tensor,
    run: Int[Tensor, "batch place"] | None,
    *,
    is_causal: bool,
    chunk: int,
) -> Tensor:
    length = a.shape[2]
    padding = -length % chunk
    a, b, v = (F.pad(x, (0, 0, 0, padding)).unflatten(2, (-1, chunk)) for x in (a, b, v))
    if run is not None:
        run = F.pad(run, (0, padding), value=-1).unflatten(1, (-1, chunk))
    own = a @ b.transpose(-2, -1)
    if run is not None:
        own = own.masked_fill((run[:, None, :, :, None] != run[:, None, :, None, :]), 0.0)
    out = widen((own.tril() if is_causal else own) @ v) + _from_before(a, b, v, run)
    if not is_causal:
        a, b, v = (x.flip(2, 3) for x in (a, b, v))
        out = out + _from_before(a, b, v, None if run is None else run.flip(1, 2)).flip(2, 3)
    return out.flatten(2, 3)[:, :, :length]


def _from_before(
    a: Tensor, b: Tensor, v: Tensor, run: Int[Tensor, "batch chunk place"] | None
) -> Tensor:
    """The part of each query's sum that comes from chunks before its own."""
    last = None
    if run is not None:
        last = run[:, :, -1]
        b = b.masked_fill((run != last[..., None])[:, None, ..., None], 0.0)
    sums = widen(b.transpose(-2, -1) @ v)
    states = carry(sums.flatten(3), last).unflatten(3, sums.shape[3:])
    taken = widen(a @ states.to(a.dtype))
    if run is None or last is None:
        return taken
    reaches = run == F.pad(last, (1, 0), value=-1)[:, :-1, None]
    return taken.masked_fill(~reaches[:, None, ..., None], 0.0)


def carry(
    values: Float[Tensor, "batch head step size"], run: Int[Tensor, "#batch step"] | None
) -> Float[Tensor, "batch head step size"]:
    """Step t gets the sum of the earlier steps that belong to the run of step t − 1; runs are
    contiguous. Zeros at step 0."""
    num_steps = values.shape[2]
    group = min(GROUP, num_steps)
    padding = -num_steps % group
    values = F.pad(values, (0, 0, 0, padding)).unflatten(2, (-1, group))
    earlier = torch.ones(group, group, dtype=torch.bool, device=values.device).tril(-1)
    table = earlier[None, None, None]
    if run is not None:
        run = F.pad(run, (0, padding), value=-1).unflatten(1, (-1, group))
        previous = F.pad(run, (1, 0), value=-1)[..., :-1]
        table = table & (previous[..., :, None] == run[..., None, :])[:, None]
    sums = table.to(values.dtype) @ values
    if values.shape[2] > 1:
        if run is None:
            reaching, end, reaches = values.sum(3), None, None
        else:
            end = run[:, :, -1]
            reaching = (
                (run == end[..., None])[:, None, :, None].to(values.dtype) @ values
            ).squeeze(3)
            before = F.pad(end, (1, 0), value=-1)[:, :-1, None]
            reaches = torch.cat(
                [torch.ones_like(before, dtype=torch.bool), run[..., :-1] == before], dim=2
            )
        over = carry(reaching, end)[:, :, :, None]
        sums = sums + (
            over if reaches is None else over.masked_fill(~reaches[:, None, ..., None], 0.0)
        )
    return sums.flatten(2, 3)[:, :, :num_steps]
