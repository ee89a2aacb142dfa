"""Sorts the tokens of a row by segment, for kernels in linear time that never form a table of
pairs.

Such kernels honour three parts of a mask: causal, padding and segments. This file reads them and
sorts the tokens of a row by their segment number, so that each segment is contiguous wherever its
tokens were. A *place* is an index in this sorted order, the *line*.

    self-attention   one place holds the query and the key of a token
    otherwise        every key and every query has its own place; a key comes before the queries
                     that may see it

Sorting has static sizes and needs no synchronisation with the device. A stack of layers prepares
the order once.

Tested against: dense masks, through the laws.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from headwise.attention.masks import Causal, Mask, Padding, PreparedMask, Segments
from headwise.attention.packed_segments import line_up, read_segments, real_tokens
from headwise.attention.refusals import refuse_part


@dataclass(frozen=True, eq=False)
class SegmentOrder:
    """The sorted order: place p holds token `order[p]`; `run[p]` is its sentence, counted from
    0."""

    order: Int[Tensor, "batch place"]
    inverse: Int[Tensor, "batch place"]
    run: Int[Tensor, "batch place"]
    is_joint: bool
    """Whether queries and keys share places; else the indices of keys come first, those of queries
    after them."""

    def sentence(self, num_keys: int) -> Int[Tensor, "batch key"]:
        """The sentence of every key."""
        return self.run.gather(1, self.inverse)[:, :num_keys]


@dataclass(frozen=True, eq=False)
class OrderedMask(PreparedMask):
    """A mask as causal (an offset or None), visible keys (or None for all) and a line (None: one
    sentence)."""

    offset: int | None
    visible: Bool[Tensor, "batch key"] | None
    line: SegmentOrder | None


def prepare_order(
    mask: Mask, num_queries: int, num_keys: int, *, kind: str, causal_too: bool = True
) -> Mask:
    """The mask as a line."""
    if mask.is_empty(num_queries, num_keys):
        return mask
    lined = order_mask(mask, num_queries, num_keys, kind=kind, causal_too=causal_too)
    return Mask((lined,), blind_count=mask.blind_count)


def order_mask(
    mask: Mask, num_queries: int, num_keys: int, *, kind: str, causal_too: bool = True
) -> OrderedMask:
    """The prepared line, or one computed now; a mask with an unsupported part is refused with a
    list of supported ones."""
    prepared, mask = mask.worked_out(OrderedMask), mask.as_given()
    for part in mask.parts:  # also in a prepared mask: another kernel may have prepared it
        known = isinstance(part, Padding | Segments) or (causal_too and isinstance(part, Causal))
        if not known:
            raise refuse_part(part, kind=kind, causal_too=causal_too)
    if prepared is not None:
        return prepared
    visible, pairs = real_tokens(mask), read_segments(mask)
    for _, key in pairs:
        visible = key != 0 if visible is None else visible & (key != 0)
    line = _lay_out(pairs, mask.causal_offset, num_queries, num_keys) if pairs else None
    return OrderedMask(mask, mask.causal_offset, visible, line)


def _lay_out(
    pairs: list[tuple[Tensor, Tensor]], offset: int | None, num_queries: int, num_keys: int
) -> SegmentOrder:
    is_joint = all(query is key for query, key in pairs) and offset in (None, 0)
    numbers = [key if is_joint else torch.cat([key, query], dim=1) for query, key in pairs]
    by_time = None
    if not is_joint:
        device = numbers[0].device
        key_time = torch.arange(num_keys, device=device)
        query_time = torch.arange(num_queries, device=device) + (offset or 0)
        if offset is None:
            key_time, query_time = torch.zeros_like(key_time), torch.zeros_like(query_time)
        # Twice the time: a query comes directly after the key of the same time. A single time is
        # left as it is.
        by_time = torch.cat([2 * key_time, 2 * query_time + 1]).argsort(stable=True)
    order, run = line_up(numbers, by_time)
    return SegmentOrder(order, invert(order), run, is_joint)


def invert(order: Int[Tensor, "*batch place"]) -> Int[Tensor, "*batch place"]:
    """The place of every token."""
    places = torch.arange(order.shape[-1], device=order.device).expand_as(order)
    return torch.empty_like(order).scatter_(-1, order, places)


class _Reordered(torch.autograd.Function):
    """x[…, order, :]; its gradient uses the inverse order, so nothing is accumulated and the result
    is deterministic."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(order, inverse)
        return x.gather(-2, order[..., None].expand(*order.shape, x.shape[-1]))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None, None]:
        order, inverse = ctx.saved_tensors
        return _Reordered.apply(gradients[0], inverse, order), None, None


def reorder(
    x: Shaped[Tensor, "batch head *round place size"],
    order: Int[Tensor, "#batch #head *round place"],
    inverse: Int[Tensor, "#batch #head *round place"],
) -> Shaped[Tensor, "batch head *round place size"]:
    """Row p of the result is row order[p] of x; `order` is a permutation and `inverse` its
    inverse."""
    places = x.shape[:-1]
    return _Reordered.apply(x, order.expand(places), inverse.expand(places))


def put_in_order(
    line: SegmentOrder,
    of_queries: Shaped[Tensor, "batch head query size"] | None,
    of_keys: Tensor | None,
) -> Shaped[Tensor, "batch head place size"]:
    """Vectors of queries, or of keys, at their places on the line; zeros at the places of the other
    kind."""
    given = of_queries if of_keys is None else of_keys
    assert given is not None
    if not line.is_joint:
        missing = line.order.shape[1] - given.shape[2]
        given = F.pad(given, (0, 0, missing, 0) if of_keys is None else (0, 0, 0, missing))
    return reorder(given, line.order[:, None], line.inverse[:, None])


def take_queries(
    line: SegmentOrder, on_line: Shaped[Tensor, "batch head place size"], num_queries: int
) -> Shaped[Tensor, "batch head query size"]:
    """The vectors at the places of the queries, in their original order."""
    return reorder(on_line, line.inverse[:, None], line.order[:, None])[:, :, -num_queries:]
