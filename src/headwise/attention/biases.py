"""Biases that are added to attention scores: a dense table, or one number for each distance.

    score(i, j) ← score(i, j) + bias(head, j − i)

The classes hold numbers and no parameters; the modules that learn them are in `positions`. A dense
table [batch, head, query, key] is the general form. Most biases depend on the distance of key and
query alone (Shaw et al. 2018, T5, ALiBi); `DistanceBias` then stores one number per head and
distance. A kernel that computes few pairs calls its method `at` with their indices and never builds
the table. A bias of minus infinity hides a key, as a mask does.

Tested against: the dense table, pair by pair.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.attention.masks import lookup


def entry_at(table: Float[Tensor, "head distance"], head: Tensor, column: Tensor) -> Tensor:
    """Single entries; a column past either end takes the value of the last column there."""
    # Used with tensors only: torch allows no expression of sizes inside a fused kernel (flex.py).
    size = table.shape[1]
    return table[head, (column.clamp(min=0) - size).clamp(max=-1) + size]


@dataclass(frozen=True, eq=False)
class DistanceBias:
    """`table[head, d − first]` for the distance d = key − query; a distance past either end takes
    the value at that end."""

    table: Float[Tensor, "head distance"]
    first: int
    """The distance that the first column stands for, usually negative."""
    offset: int = 0
    """Number of keys that precede query 0, as in `Causal`."""

    def at(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        """The bias of single pairs; the index tensors broadcast, and so does the result."""
        return entry_at(self.table, head, key - query - self.offset - self.first)

    def dense(self, num_queries: int, num_keys: int) -> Float[Tensor, "1 head query key"]:
        column = distance_columns(
            num_queries,
            num_keys,
            first=self.first,
            size=self.table.shape[1],
            offset=self.offset,
            device=self.table.device,
        )
        return self.table[:, column][None]


@dataclass(frozen=True, eq=False)
class VectorBias:
    """A bias of the scores together with a vector for each distance that is added to the values
    (Shaw et al. 2018):

        output(i) ← output(i) + Σ_j weight(i, j) · values[d − first],   d = j − i, clipped

    Only a kernel that forms its weights can add the second part.
    """

    scores: Float[Tensor, "batch head query key"]
    values: Float[Tensor, "distance head_dim"]
    first: int
    offset: int = 0

    def mix(
        self, weights: Float[Tensor, "batch head query key"]
    ) -> Float[Tensor, "batch head query head_dim"]:
        """The sum over the distance vectors: weights are summed by distance first, so that no
        [query, key, dim] table exists."""
        column = distance_columns(
            *weights.shape[-2:],
            first=self.first,
            size=len(self.values),
            offset=self.offset,
            device=weights.device,
        )
        by_distance = weights.new_zeros(*weights.shape[:-1], len(self.values))
        return by_distance.scatter_add(-1, column.expand(weights.shape), weights) @ self.values.to(
            weights.dtype
        )


Bias = Float[Tensor, "#batch #head #query key"] | DistanceBias | VectorBias


def dense_bias(
    bias: Bias, num_queries: int, num_keys: int
) -> Float[Tensor, "#batch #head #query key"]:
    """The table that is added to the scores."""
    if isinstance(bias, VectorBias):
        return bias.scores
    return bias.dense(num_queries, num_keys) if isinstance(bias, DistanceBias) else bias


def bias_at(bias: Bias, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """The bias of single pairs; the index tensors broadcast, and so does the result."""
    if isinstance(bias, DistanceBias):
        return bias.at(batch, head, query, key)
    return lookup(bias.scores if isinstance(bias, VectorBias) else bias, batch, head, query, key)


def distance_columns(
    num_queries: int, num_keys: int, *, first: int, size: int, offset: int, device: torch.device
) -> Int[Tensor, "query key"]:
    """For every pair, the column of its distance in a table of `size` distances starting at
    `first`."""
    query, key = torch.arange(num_queries, device=device), torch.arange(num_keys, device=device)
    return (key - query[:, None] - offset - first).clamp(0, size - 1)
