"""Attention over few keys: each block of queries fetches the keys it needs and computes only those
pairs.

    for every block of queries I:   keys J(I) = the band around I, and some far ones ("extra")
        scores  = q_I k_Jᵀ / √head_dim + bias(I, J)
        weights = softmax(scores over the pairs of I × J that the mask allows)
        output  = weights v_J

The mask is evaluated only at these pairs (`Mask.at`), so nothing has the size queries × keys: with
s keys for each of n queries, time and memory are n · s. The time is dominated by memory traffic,
not by arithmetic: n · s scores in fp32 are written and read about ten times forward and backward (8
heads, 65,536 tokens, s = 640: 1.3 GB each time), while the products are 4 · n · s · head_dim
operations a head, a hundredth of those of full attention. On CUDA attention/sparse/flex.py keeps
the scores in registers; this form works on every device, with dropout and in double precision.

A block of queries never fetches more keys than there are. If its list would be longer, it takes all
keys in their order and the mask selects them: the same result from fewer pairs.

Tested against: attention/kernels/full.py under the same mask, written out.
"""

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headwise.attention.biases import Bias, bias_at
from headwise.attention.masks import Mask
from headwise.attention.precision import leave_half, widen


@dataclass(frozen=True, eq=False)
class Layout:
    """Which keys each block of queries fetches: those at most `left` before and `right` after one
    of its own positions, and the `extra` ones."""

    num_queries: int
    num_keys: int
    block: int
    left: int
    right: int
    device: torch.device
    offset: int = 0
    """Number of keys that precede query 0, as in `Causal`."""
    step: int = 1
    """Distance between the queries of a block, and between the keys they fetch (dilation)."""
    extra: Int[Tensor, "#batch block extra"] | None = None
    """Far keys by position; −1 for none. A key that lies in the band must be −1 here, or it would
    count twice."""

    @property
    def num_blocks(self) -> int:
        """Rounded up so that every residue of `step` has the same number."""
        return self.step * self.num_lines

    @property
    def num_lines(self) -> int:
        return math.ceil(self.num_queries / (self.block * self.step))

    @property
    def width(self) -> int:
        """Number of keys in the band of one block, a multiple of the block."""
        return math.ceil((self.left + self.right) / (self.step * self.block) + 1) * self.block

    @property
    def fetched_right(self) -> int:
        """How far the band extends after the last query of a block: `right`, and what rounding
        adds."""
        return self.step * (self.width - self.block - self.left // self.step)

    @property
    def takes_all(self) -> bool:
        num_extra = 0 if self.extra is None else self.extra.shape[-1]
        return self.width + num_extra >= self.num_keys

    @property
    def query(self) -> Int[Tensor, "block place"]:
        """Position of every query; past the end in the last blocks."""
        residue = torch.arange(self.step, device=self.device)[:, None, None]
        line = torch.arange(self.num_lines, device=self.device)[:, None]
        place = torch.arange(self.block, device=self.device)
        return (residue + self.step * (line * self.block + place)).flatten(0, 1)

    @property
    def band(self) -> Int[Tensor, "block key"]:
        """Position of every key of the band, including positions before the beginning and past the
        end."""
        first = self.query[:, :1] + self.offset - self.step * (self.left // self.step)
        return first + self.step * torch.arange(self.width, device=self.device)

    @property
    def key(self) -> Int[Tensor, "#batch block key"]:
        """Position of every fetched key; positions outside 0 … num_keys − 1 do not exist."""
        if self.takes_all:
            return torch.arange(self.num_keys, device=self.device).expand(1, self.num_blocks, -1)
        if self.extra is None:
            return self.band[None]
        return torch.cat([self.band.expand(self.extra.shape[0], -1, -1), self.extra], dim=-1)

    def with_extra(self, extra: Int[Tensor, "#batch block extra"]) -> "Layout":
        """The same layout with far keys; those that lie in the band are left out, because they
        would count twice."""
        first = self.band[:, :1]
        in_band = (
            (extra >= first)
            & (extra < first + self.step * self.width)
            & ((extra - first) % self.step == 0)
        )
        return replace(self, extra=in_eights(torch.where(in_band, -1, extra), beside=self.width))

    def fetch_queries(
        self, x: Float[Tensor, "batch head query width"]
    ) -> Float[Tensor, "batch head block place width"]:
        size = self.num_blocks * self.block
        lines = F.pad(x, (0, 0, 0, size - x.shape[2])).unflatten(2, (-1, self.step)).transpose(2, 3)
        return lines.reshape(*x.shape[:2], self.num_blocks, self.block, x.shape[3])

    def restore(
        self, x: Float[Tensor, "batch head block place width"]
    ) -> Float[Tensor, "batch head query width"]:
        """The inverse of `fetch_queries`."""
        lines = x.unflatten(2, (self.step, -1)).flatten(3, 4).transpose(2, 3)
        return lines.flatten(2, 3)[:, :, : self.num_queries]

    def fetch_keys(
        self, x: Float[Tensor, "batch head key width"]
    ) -> Float[Tensor, "batch head block chosen width"]:
        if self.takes_all:
            return x[:, :, None].expand(-1, -1, self.num_blocks, -1, -1)
        band = self._fetch_band(x)
        return (
            band
            if self.extra is None
            else torch.cat([band, self._fetch_extra(x, self.extra)], dim=3)
        )

    def _fetch_band(self, x: Tensor) -> Tensor:
        # Neighbouring blocks share most of their keys. Shifted slices are used instead of an index:
        # their gradient is a few plain sums.
        before = self.step * (self.left // self.step) - self.offset
        num_shifts = self.width // self.block
        size = self.step * self.block * (self.num_lines + num_shifts - 1)
        line = F.pad(x, (0, 0, before, size - before - x.shape[2]))  # negative padding cuts
        blocks = line.unflatten(2, (-1, self.block, self.step)).movedim(4, 2)
        shifts = [blocks[:, :, :, shift : shift + self.num_lines] for shift in range(num_shifts)]
        return torch.cat(shifts, dim=4).flatten(2, 3)

    def _fetch_extra(self, x: Tensor, extra: Tensor) -> Tensor:
        # All tokens of the batch along one axis: the projections produce [batch, time, head, width]
        # in memory anyway.
        num_batch, num_heads, num_keys, width = x.shape
        first = num_keys * torch.arange(num_batch, device=x.device)[:, None, None]
        index = (first + extra.clamp(min=0)).expand(num_batch, -1, -1)
        rows = x.transpose(1, 2).reshape(-1, num_heads * width).index_select(0, index.flatten())
        return rows.view(*index.shape, num_heads, width).permute(0, 3, 1, 2, 4)


def allowed_pairs(mask: Mask, layout: Layout) -> Bool[Tensor, "#batch #head block place chosen"]:
    """The mask at the pairs of a layout, and False for keys that do not exist."""
    batch, head, query, key = pair_numbers(layout, *mask.sizes)
    exists = (layout.key >= 0) & (layout.key < layout.num_keys)
    table = exists[:, None, :, None, :].expand(-1, -1, -1, layout.block, -1)
    seen = mask.at(batch, head, query, key)
    return table if seen is None else table & seen


def pair_numbers(
    layout: Layout, num_batch: int, num_heads: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Index tensors of batch, head, query and key that broadcast to [batch, head, block, place,
    chosen], all inside the tables."""
    batch = torch.arange(num_batch, device=layout.device).view(-1, 1, 1, 1, 1)
    head = torch.arange(num_heads, device=layout.device).view(-1, 1, 1, 1)
    query = layout.query.clamp(max=layout.num_queries - 1)[None, None, :, :, None]
    key = layout.key.clamp(0, layout.num_keys - 1)[:, None, :, None, :]
    return batch, head, query, key


def attend_gathered(
    q: Float[Tensor, "batch head query head_dim"],
    k: Float[Tensor, "batch head key head_dim"],
    v: Float[Tensor, "batch head key value_dim"],
    layout: Layout,
    allowed: Bool[Tensor, "#batch #head block place chosen"],
    *,
    bias: Bias | None = None,
    dropout_rate: float = 0.0,
) -> Float[Tensor, "batch head query value_dim"]:
    """Softmax over the visible pairs; a query without one gives zeros."""
    scores = layout.fetch_queries(leave_half(q)) @ layout.fetch_keys(leave_half(k)).transpose(
        -2, -1
    )
    scores = widen(scores) / math.sqrt(q.shape[-1])
    if bias is not None:
        added = bias_at(bias, *pair_numbers(layout, *q.shape[:2]))
        scores, allowed = scores + added, allowed & (added != -torch.inf)
    weights = (
        scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
        .softmax(-1)
        .masked_fill(~allowed, 0.0)
    )
    weights = weights.to(q.dtype)
    if dropout_rate > 0:
        weights = F.dropout(weights, dropout_rate)
    return layout.restore(weights @ layout.fetch_keys(v))


def in_eights(tokens: Int[Tensor, "... count"], *, beside: int = 0) -> Int[Tensor, "... more"]:
    """Padded with −1 until their number, with the keys beside them, is a multiple of eight: tensor
    cores need multiples of eight, and the compiler pads odd rows by itself (with torch 2.11 in
    bfloat16 on CUDA, Longformer, the only kernel with such tables, then learnt less well)."""
    return F.pad(tokens, (0, -(tokens.shape[-1] + beside) % 8), value=-1)


def fitting_block(num_near: int) -> int:
    """Number of queries in a block: small blocks make products inefficient, large ones compute
    pairs that the mask hides."""
    return next(size for size in (16, 32, 64, 128) if 2 * size >= num_near or size == 128)
