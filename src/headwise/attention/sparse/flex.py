"""Computes block-sparse attention on CUDA in one fused kernel, by torch's FlexAttention.

The [query, key] table is cut into tiles of 128 × 128. A tile without a pair of the pattern is never
loaded. A tile that lies inside a band or in linked blocks is computed without a mask. In the others
the mask is evaluated pair by pair inside the kernel (`Mask.at` has the required signature). Scores
stay in registers. A mask that computes a few numbers costs nothing; a mask that looks up numbers
for queries and keys costs ten times the products of the tile (measured on an H200), which is why
patterns over a single sentence are written as arithmetic. The layout of the chunked form
(gathered.py) decides which tiles exist, so both forms compute the same pairs. The table of tiles
has (n / 128)² entries of one byte (65,536 tokens: 0.26 MB, and its lists of indices 1 MB) and is
made once per batch; torch's own `create_block_mask` would evaluate all n² pairs.

Cost for n tokens, h heads of d and s keys a query, rounded up to tiles: 4 · n · h · s · d
operations forward, 10 backward; bytes: q, k, v and the output once, keys and values again for each
tile row from cache. At n = 65,536, h = 8, d = 64, s = 640: 86 GFLOP and 0.3 GB forward, so 0.2 ms
by arithmetic on an H200 at half its bf16 peak; full attention needs 8.8 TFLOP, a hundred times as
many.

Dong et al. 2024 (FlexAttention). Tested against: attention/kernels/full.py, by torch's uncompiled
form on a CPU; benchmarks/bench_sparse.py on CUDA.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from headwise.attention.biases import Bias, DistanceBias, bias_at, entry_at
from headwise.attention.masks import BlockPart, LengthPart, Mask
from headwise.attention.sparse.gathered import Layout
from headwise.errors import UsageError

TILE = 128
# torch stops compiling a function after 8 variants (kinds of masks, their numbers, types, with and
# without gradients) and would then silently compute all n² pairs; with fullgraph it raises. Lengths
# are not variants.
MAX_VARIANTS = 128
Pair = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
Lists = tuple[Tensor, Tensor, Tensor | None, Tensor | None]
Score = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class FlexTable:
    """The tiles that contain visible pairs, and the mask inside them."""

    tiles: BlockMask
    mask: Mask


def tiles_of(mask: Mask, layout: Layout, *, only_band: bool) -> FlexTable:
    """The tiles that contain the pairs of a layout. `only_band`: inside the band only its two edges
    hide pairs."""
    query = (
        TILE * torch.arange(_num_tiles(layout.num_queries), device=layout.device)[:, None]
        + layout.offset
    )
    key = TILE * torch.arange(_num_tiles(layout.num_keys), device=layout.device)
    band = (key + TILE - 1 >= query - layout.left) & (
        key <= query + TILE - 1 + layout.fetched_right
    )
    inside = (key + TILE - 1 <= query + layout.right) & (key >= query + TILE - 1 - layout.left)
    inside = (
        inside & (key + TILE <= layout.num_keys)
        if only_band and layout.step == 1
        else torch.zeros_like(band)
    )
    if (
        only_band
        and (part := next((part for part in mask.parts if isinstance(part, BlockPart)), None))
        is not None
    ):
        inside = _linked(part, layout)
    if layout.takes_all:
        band = torch.ones_like(band)
    if layout.extra is None or layout.takes_all:
        return _table(mask, band[None], inside[None], layout)
    # A block of queries may overlap several rows of tiles.
    reach = _samples(layout.block, layout.device)
    place = (layout.block * torch.arange(layout.num_blocks, device=layout.device)[:, None] + reach)[
        None, :, :, None
    ]
    extra = layout.extra[:, :, None, :]
    exists = (extra >= 0) & (place < layout.num_queries)
    tiles = _mark(
        place, extra, exists, (_num_tiles(layout.num_queries), _num_tiles(layout.num_keys))
    )
    return _table(mask, band | tiles, inside.expand_as(tiles), layout)


def attend_flex(
    q: Float[Tensor, "batch head query head_dim"],
    k: Float[Tensor, "batch head key head_dim"],
    v: Float[Tensor, "batch head key value_dim"],
    table: FlexTable,
    *,
    bias: Bias | None = None,
) -> Float[Tensor, "batch head query value_dim"]:
    """A query without a visible key gives zeros."""
    if q.device.type == "cpu":
        _refuse_gradients(q, k, v)
        # torch requires it even where no gradients are computed.
        q, k, v = (
            q.detach(),
            k.detach(),
            v.detach(),
        )
    if torch.compiler.is_compiling() or q.device.type == "cpu":
        score = None if bias is None else functools.partial(_add_bias, bias)
        output = flex_attention(q, k, v, score_mod=score, block_mask=table.tiles)
        assert isinstance(output, Tensor)
        return output
    return attend_compiled(_compiled(), q, k, v, table, bias=bias)


def _refuse_gradients(*inputs: Tensor) -> None:
    if torch.is_grad_enabled() and any(x.requires_grad for x in inputs):
        raise UsageError(
            'form="flex" was asked for gradients on a CPU, where torch has the fused kernel '
            'without them; use form="chunked" (or "auto", which chooses it on a CPU), '
            "or torch.no_grad()",
            'form="flex" 在 CPU 上被要求计算梯度，而 torch 的融合内核在 CPU 上没有梯度；'
            '请用 form="chunked"（或在 CPU 上会选它的 "auto"），或 torch.no_grad()',
        )


def attend_compiled(
    compiled: Callable[..., Any],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    table: FlexTable,
    *,
    bias: Bias | None = None,
) -> Tensor:
    """One kernel for all lengths: `compiled` comes from `compile_flex`.

    Sizes are symbols, and the plain numbers of a mask (the width of a window, a block) are
    constants: torch allows no expression of symbols inside a mask, and a division by a constant is
    cheaper. So everything that depends on the length is a tensor or a size, never a plain number.
    """
    score: Score | None = None if bias is None else functools.partial(_add_bias, bias)
    if isinstance(bias, DistanceBias):
        first = torch.full((), bias.first + bias.offset, device=q.device)
        score = functools.partial(_add_distance, bias.table, first)
    tiles = table.tiles
    keys = (tiles.kv_num_blocks, tiles.kv_indices, tiles.full_kv_num_blocks, tiles.full_kv_indices)
    assert tiles.q_num_blocks is not None
    assert tiles.q_indices is not None
    queries = (tiles.q_num_blocks, tiles.q_indices, tiles.full_q_num_blocks, tiles.full_q_indices)
    with torch._dynamo.config.patch(recompile_limit=MAX_VARIANTS, specialize_int=True):
        output = compiled(
            q, k, v, score, _ask(_at_any_length(table.mask, q.device)), (keys, queries)
        )
    assert isinstance(output, Tensor)
    return output


@functools.cache
def _compiled() -> Callable[..., Any]:
    return compile_flex()


def compile_flex(backend: str | Callable[..., Any] = "inductor") -> Callable[..., Any]:
    """One kernel for all lengths. Rows of a single tile are compiled separately, because torch
    treats sizes of one as fixed."""
    return torch.compile(_attend, dynamic=True, fullgraph=True, backend=backend)


def _attend(
    q: Tensor, k: Tensor, v: Tensor, score: Score | None, may_look: Pair, lists: tuple[Lists, Lists]
) -> Any:
    """The tiles are assembled here, so that their lengths are the symbols of q and k."""
    keys, queries = lists
    tiles = BlockMask((q.shape[2], k.shape[2]), *keys, *queries, (TILE, TILE), may_look)
    return flex_attention(q, k, v, score_mod=score, block_mask=tiles)


def _add_bias(
    bias: Bias, score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor
) -> Tensor:
    return score + bias_at(bias, batch, head, query, key)


def _add_distance(
    table: Tensor,
    first: Tensor,
    score: Tensor,
    batch: Tensor,
    head: Tensor,
    query: Tensor,
    key: Tensor,
) -> Tensor:
    return score + entry_at(table, head, key - query - first)


def _num_tiles(length: int) -> int:
    return -(-length // TILE)


def _samples(block: int, device: torch.device) -> Tensor:
    """Indices inside a block that together touch every tile the block touches."""
    return (TILE * torch.arange(_num_tiles(block) + 1, device=device)).clamp(max=block - 1)


def _linked(part: BlockPart, layout: Layout) -> Bool[Tensor, "tile_row tile"]:
    """Tiles in which every block of queries sees every block of keys."""
    shape = (_num_tiles(layout.num_queries), _num_tiles(layout.num_keys))
    step = min(part.num_alike, TILE)
    # Blocks under half a tile cover few tiles completely, and the table of all of them would be
    # large.
    if 2 * step < TILE or TILE % step != 0 or part.num_alike % step != 0:
        return torch.zeros(shape, dtype=torch.bool, device=layout.device)
    query, key = (torch.arange(0, count * TILE, step, device=layout.device) for count in shape)
    zero = torch.zeros((), dtype=torch.long, device=layout.device)
    exists = (query + step <= layout.num_queries)[:, None] & (key + step <= layout.num_keys)
    seen = part.at(zero, zero, query[:, None], key) & exists
    return seen.unflatten(1, (-1, TILE // step)).unflatten(0, (-1, TILE // step)).all(3).all(1)


def _mark(
    query: Tensor, key: Tensor, exists: Tensor, shape: tuple[int, int]
) -> Bool[Tensor, "batch tile_row tile"]:
    """True for the tile of every existing pair; the others are written beyond the end and cut
    off."""
    number = torch.where(
        exists, query // TILE * shape[1] + key // TILE, shape[0] * shape[1]
    ).flatten(1)
    table = torch.zeros(
        number.shape[0], shape[0] * shape[1] + 1, dtype=torch.bool, device=number.device
    )
    return table.scatter(1, number, value=True)[:, :-1].unflatten(1, shape)


def _table(
    mask: Mask,
    tiles: Bool[Tensor, "batch tile_row tile"],
    inside: Bool[Tensor, "batch tile_row tile"],
    layout: Layout,
) -> FlexTable:
    """Mark tiles that lie completely inside the pattern, in which no mask is evaluated."""

    count, order = _list(tiles & ~inside)
    full_count, full_order = _list(tiles & inside)
    lengths = (layout.num_queries, layout.num_keys)
    return FlexTable(
        BlockMask.from_kv_blocks(
            count,
            order,
            full_count,
            full_order,
            BLOCK_SIZE=TILE,
            mask_mod=_ask(mask),
            seq_lengths=lengths,
        ),
        mask,
    )


def _ask(mask: Mask) -> Pair:
    def may_look(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        seen = mask.at(batch, head, query, key)
        return key >= 0 if seen is None else seen

    return may_look


def _at_any_length(mask: Mask, device: torch.device) -> Mask:
    parts = (
        part.at_any_length(device) if isinstance(part, LengthPart) else part for part in mask.parts
    )
    return replace(mask, parts=tuple(parts))


def _list(tiles: Bool[Tensor, "batch tile_row tile"]) -> tuple[Tensor, Tensor]:
    """For every row of tiles their number, and their indices in order."""
    count = tiles.sum(-1, dtype=torch.int32)[:, None]
    order = (
        tiles.to(torch.int8).argsort(dim=-1, descending=True, stable=True).to(torch.int32)[:, None]
    )
    return count, order
