"""Finds the pairs of tokens that share a hash bucket, for the Reformer's attention.

The tokens are hashed several times; each hashing is a round. In each round they are sorted by
bucket, and the place of a token is its index in this order. A bucket is contiguous, so the keys of
token i are an interval of places:

    low = max(start of the bucket, place − window)
    high = min(end of the bucket, place + window); causal: place
    i attends to j in a round  ⟺  low_i ≤ place_j ≤ high_i

The sorted tokens of a round are cut into blocks of `window` places. A block is compared with
itself, the block before it and, without causality, the block after it. A pair of tokens can be
found in several rounds and must count once. So `compare` also returns for each pair the number of
other rounds that find it: two comparisons for each of them.

Tested against: the table of weights of kernels/reformer.py, through its tests and the laws.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from headwise.attention.segment_order import invert

PADDING = torch.iinfo(torch.long).max
"""The bucket of tokens that attend to no other token."""


@dataclass(frozen=True, eq=False)
class BucketNeighbours:
    """The sorted orders of all rounds: place p of a round holds token order[p], which attends to
    the places low[p] … high[p]."""

    order: Int[Tensor, "batch head round time"]
    place: Int[Tensor, "batch head round time"]
    low: Int[Tensor, "batch head round time"]
    high: Int[Tensor, "batch head round time"]
    size: int
    """Number of places in a block."""
    num_sides: int

    def sort(
        self, x: Float[Tensor, "batch head time size"]
    ) -> Float[Tensor, "batch head round block place size"]:
        """Vectors of tokens, in the order of each round."""
        there, back = self.order.flatten(2), _beside(self.place)
        return self._blocks(_SortedRows.apply(x, there, back).unflatten(2, self.order.shape[2:]))

    def unsort(
        self, blocks: Float[Tensor, "batch head round block place size"]
    ) -> Float[Tensor, "batch head round time size"]:
        """Vectors in the order of each round, back in the order of the tokens."""
        x = blocks.flatten(3, 4)[:, :, :, : self.order.shape[3]].flatten(2, 3)
        return _SortedRows.apply(x, _beside(self.place), _beside(self.order)).unflatten(
            2, self.order.shape[2:]
        )

    def with_neighbours(self, blocks: Tensor) -> Tensor:
        """Each block with the one before it and, if not causal, the one after it."""
        before = F.pad(blocks, (0, 0, 0, 0, 1, 0))[..., :-1, :, :]
        after = [F.pad(blocks, (0, 0, 0, 0, 0, 1))[..., 1:, :, :]] if self.num_sides == 2 else []
        return torch.cat([before, blocks, *after], dim=-2)

    def compare(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """For each pair in the order of each round, [batch, head, round, block, query, key]: 1 if
        the pair is found in this round, and the number of other rounds in which it is found."""
        here = self._meet(self.low, self.high, self._own_places()).to(dtype)
        others = torch.zeros((), dtype=dtype, device=here.device)
        for shift in range(1, self.order.shape[2]):
            # The places and intervals of the tokens in another round, in the order of each round.
            place, low, high = (x.roll(-shift, dims=2) for x in (self.place, self.low, self.high))
            place = place.gather(-1, self.order)
            low, high = low.gather(-1, place), high.gather(-1, place)
            # No token has place -1.
            keys = self.with_neighbours(self._blocks(place[..., None] + 1))[..., 0] - 1
            also = self._meet(low, high, keys)
            others = also.to(dtype) if shift == 1 else others.add_(also)
        return here, others

    def itself(self, like: Tensor) -> Float[Tensor, "query key"]:
        """1 where query and key are the same token: places of a block against those of itself and
        its neighbours."""
        table = torch.eye(self.size, dtype=like.dtype, device=like.device)
        return F.pad(table, (self.size, self.size if self.num_sides == 2 else 0))

    def _meet(self, low: Tensor, high: Tensor, places: Tensor) -> Tensor:
        low, high = self._blocks(low[..., None]), self._blocks(high[..., None], padding=-1)
        return (places[..., None, :] >= low) & (places[..., None, :] <= high)

    def _own_places(self) -> Int[Tensor, "block key"]:
        num_blocks = -(-self.order.shape[3] // self.size)
        begins = self.size * torch.arange(-1, num_blocks - 1, device=self.order.device)
        return begins[:, None] + torch.arange(
            self.size * (1 + self.num_sides), device=self.order.device
        )

    def _blocks(self, x: Tensor, padding: int = 0) -> Tensor:
        return F.pad(x, (0, 0, 0, -x.shape[-2] % self.size), value=padding).unflatten(
            -2, (-1, self.size)
        )


def find_neighbours(
    run: Int[Tensor, "batch head round time"], *, window: int, is_causal: bool
) -> BucketNeighbours:
    """`run` is the bucket of each token in each round."""
    own_run, order = run.sort(dim=-1, stable=True)
    length = run.shape[-1]
    time = torch.arange(length, device=run.device)
    changes = own_run[..., 1:] != own_run[..., :-1]
    low = (
        torch.where(F.pad(changes, (1, 0), value=True), time, 0)
        .cummax(-1)
        .values.maximum(time - window)
    )
    high = time.expand_as(order)
    if not is_causal:
        ends = (
            torch.where(F.pad(changes, (0, 1), value=True), time, length)
            .flip(-1)
            .cummin(-1)
            .values.flip(-1)
        )
        high = ends.minimum(time + window)
    high = torch.where(own_run == PADDING, -1, high)
    return BucketNeighbours(
        order, invert(order), low, high, max(1, min(window, length)), 1 if is_causal else 2
    )


def _beside(number: Int[Tensor, "batch head round time"]) -> Int[Tensor, "batch head place"]:
    """Indices within a round as indices into all rounds, one after the other."""
    num_rounds, length = number.shape[2:]
    return (number + length * torch.arange(num_rounds, device=number.device)[:, None]).flatten(2)


class _SortedRows(torch.autograd.Function):
    """x[…, order, :], whole rows at a time. `order` contains every row equally often (once a
    round). In the backward pass the rows of the gradient in the order `inverse` are the rounds one
    after the other, and are added in that order: the result is deterministic."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(inverse)
        ctx.num_rows = x.shape[2]
        return _take_rows(x, order)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None, None]:
        (inverse,) = ctx.saved_tensors
        by_round = _take_rows(gradients[0], inverse).unflatten(2, (-1, ctx.num_rows))
        return by_round.sum(2), None, None


def _take_rows(
    x: Float[Tensor, "batch head row size"], index: Int[Tensor, "batch head place"]
) -> Tensor:
    begins = x.shape[2] * torch.arange(x.shape[0] * x.shape[1], device=x.device).view(
        *x.shape[:2], 1
    )
    return (
        x.reshape(-1, x.shape[3])
        .index_select(0, (index + begins).flatten())
        .view(*index.shape, x.shape[3])
    )
