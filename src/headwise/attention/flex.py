"""Block-sparse attention in one fused kernel on CUDA: torch's FlexAttention, told which tiles of the table exist.

The [query, key] table is cut into tiles of 128 × 128. A tile that holds no pair of the pattern is never loaded; in the others the
mask is asked pair by pair inside the kernel (`Mask.at` has the signature it wants), and scores stay in registers. Which tiles exist follows from
the same layout that the chunked form fetches by, so both forms compute the same pairs. That table has (n / 128)² entries of one byte
(65,536 tokens: 0.26 MB, and its lists of indices 1 MB), made once per batch; torch's own `create_block_mask` would ask about
all n² pairs.

Cost for n tokens, h heads of d and s keys a query, rounded up to tiles: 4 · n · h · s · d operations forward, 10 backward; bytes: q, k, v and the output once,
keys and values again for each tile row from cache. At n = 65,536, h = 8, d = 64, s = 640: 86 GFLOP and 0.3 GB forward, so 0.2 ms by arithmetic on
an H200 at half its bf16 peak; full attention needs 8.8 TFLOP, a hundred times as many.

Dong et al. 2024 (FlexAttention). Tested against: attention/full.py, by torch's uncompiled form on a CPU; benchmarks/bench_sparse.py on CUDA.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from headwise.attention.biases import Bias, bias_at
from headwise.attention.gathered import Layout
from headwise.attention.masks import Mask, number_zero
from headwise.attention.wide_rows import WideRows

TILE = 128
# torch stops compiling a function after 8 shapes, and would then compute all n² pairs without a word; with fullgraph it raises.
MAX_SHAPES = 128


@dataclass(frozen=True, eq=False)
class FlexTable:
    """The tiles that exist, and the mask inside them."""

    tiles: BlockMask


def near_tiles(mask: Mask, layout: Layout) -> FlexTable:
    """The tiles that a layout's pairs lie in."""
    query = TILE * torch.arange(_num_tiles(layout.num_queries), device=layout.device)[:, None] + layout.offset
    key = TILE * torch.arange(_num_tiles(layout.num_keys), device=layout.device)
    band = (key + TILE - 1 >= query - layout.left) & (key <= query + TILE - 1 + layout.fetched_right)
    if layout.takes_all:
        band = torch.ones_like(band)
    if layout.extra is None or layout.takes_all:
        return _table(mask, band[None], layout.num_queries, layout.num_keys)
    # A block of queries may reach into several rows of tiles.
    reach = _samples(layout.block, layout.device)
    place = (layout.block * torch.arange(layout.num_blocks, device=layout.device)[:, None] + reach)[None, :, :, None]
    extra = layout.extra[:, :, None, :]
    exists = (extra >= 0) & (place < layout.num_queries)
    tiles = _mark(place, extra, exists, (_num_tiles(layout.num_queries), _num_tiles(layout.num_keys)))
    return _table(mask, band | tiles, layout.num_queries, layout.num_keys)


def far_tiles(mask: Mask, rows: WideRows, num_keys: int) -> FlexTable:
    """The tiles of the queries that look everywhere; other queries see nothing here."""
    device, num_queries = rows.target.device, rows.is_wide.shape[1]
    reach = _samples(rows.block, device)
    place = (rows.block * torch.arange(rows.target.shape[1], device=device)[:, None] + reach)[None, :, None, :]
    target = rows.target[:, :, :, None]
    wide = rows.is_wide.gather(1, rows.target.clamp(min=0).flatten(1)).view(rows.target.shape)[..., None]
    exists = (target >= 0) & wide & (place < num_keys)
    tiles = _mark(target, place, exists, (_num_tiles(num_queries), _num_tiles(num_keys)))
    return _table(mask & Mask((WideOnly(rows.is_wide),)), tiles, num_queries, num_keys)


@dataclass(frozen=True, eq=False)
class WideOnly:
    """Only queries that look everywhere."""

    is_wide: Bool[Tensor, "#batch query"]

    @property
    def sizes(self) -> tuple[int, int]:
        return self.is_wide.shape[0], 1

    def at(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return self.is_wide[batch if self.is_wide.shape[0] > 1 else number_zero(batch), query]

    def dense(self, num_queries: int, num_keys: int, device: torch.device) -> Bool[Tensor, "#batch 1 query key"]:
        return self.is_wide[:, None, :, None].expand(-1, -1, -1, num_keys)


def attend_flex(
    q: Float[Tensor, "batch head query head_dim"],
    k: Float[Tensor, "batch head key head_dim"],
    v: Float[Tensor, "batch head key value_dim"],
    table: FlexTable,
    *,
    bias: Bias | None = None,
) -> Float[Tensor, "batch head query value_dim"]:
    """A query that sees nothing gives zeros."""
    score = None if bias is None else functools.partial(_add_bias, bias)
    if torch.compiler.is_compiling() or q.device.type == "cpu":
        output = flex_attention(q, k, v, score_mod=score, block_mask=table.tiles)
    else:
        with torch._dynamo.config.patch(recompile_limit=MAX_SHAPES):
            output = _compiled()(q, k, v, score_mod=score, block_mask=table.tiles)
    assert isinstance(output, Tensor)
    return output


@functools.cache
def _compiled() -> Callable[..., Any]:
    return torch.compile(flex_attention, dynamic=False, fullgraph=True)


def _add_bias(bias: Bias, score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return score + bias_at(bias, batch, head, query, key)


def _num_tiles(length: int) -> int:
    return -(-length // TILE)


def _samples(block: int, device: torch.device) -> Tensor:
    """Places of a block that between them touch every tile it touches."""
    return (TILE * torch.arange(_num_tiles(block) + 1, device=device)).clamp(max=block - 1)


def _mark(query: Tensor, key: Tensor, exists: Tensor, shape: tuple[int, int]) -> Bool[Tensor, "batch tile_row tile"]:
    """True for the tile of every pair that exists; the others are written beyond the end and cut off."""
    number = torch.where(exists, query // TILE * shape[1] + key // TILE, shape[0] * shape[1]).flatten(1)
    table = torch.zeros(number.shape[0], shape[0] * shape[1] + 1, dtype=torch.bool, device=number.device)
    return table.scatter(1, number, value=True)[:, :-1].unflatten(1, shape)


def _table(mask: Mask, tiles: Bool[Tensor, "batch tile_row tile"], num_queries: int, num_keys: int) -> FlexTable:
    def may_look(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        seen = mask.at(batch, head, query, key)
        return key >= 0 if seen is None else seen

    count = tiles.sum(-1, dtype=torch.int32)[:, None]
    order = tiles.to(torch.int8).argsort(dim=-1, descending=True, stable=True).to(torch.int32)[:, None]
    lengths = (num_queries, num_keys)
    return FlexTable(BlockMask.from_kv_blocks(count, order, BLOCK_SIZE=TILE, mask_mod=may_look, seq_lengths=lengths))
