"""Biases as values: a number added to the score of a query and a key, given as a table or as a rule.

    score(i, j) ← score(i, j) + bias(head, j − i)

A dense table [batch, head, query, key] is the general bias. Most biases know only the distance of key and query (Shaw et al. 2018,
T5's buckets, ALiBi), so one number per head and distance says it all; a kernel that looks at few pairs asks for those with
`at` and never builds the table. minus infinity hides a key, as a mask does.

Tested against: the dense table, pair by pair.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.attention.masks import lookup


@dataclass(frozen=True, eq=False)
class DistanceBias:
    """`table[head, d − first]` for the distance d = key − query; a distance past either end takes the value at that end."""

    table: Float[Tensor, "head distance"]
    first: int
    """The distance that the first column stands for, usually negative."""
    offset: int = 0
    """Number of keys that precede query 0, as in `Causal`."""

    def at(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        """The bias of single pairs; the tables of numbers broadcast, and so does the answer."""
        column = (key - query - self.offset - self.first).clamp(0, self.table.shape[1] - 1)
        return self.table[head, column]

    def dense(self, num_queries: int, num_keys: int) -> Float[Tensor, "1 head query key"]:
        device = self.table.device
        query, key = torch.arange(num_queries, device=device), torch.arange(num_keys, device=device)
        column = (key - query[:, None] - self.offset - self.first).clamp(0, self.table.shape[1] - 1)
        return self.table[:, column][None]


Bias = Float[Tensor, "#batch #head #query key"] | DistanceBias


def dense_bias(bias: Bias, num_queries: int, num_keys: int) -> Float[Tensor, "#batch #head #query key"]:
    return bias.dense(num_queries, num_keys) if isinstance(bias, DistanceBias) else bias


def bias_at(bias: Bias, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """The bias of single pairs; the tables of numbers broadcast, and so does the answer."""
    if isinstance(bias, DistanceBias):
        return bias.at(batch, head, query, key)
    return lookup(bias, batch, head, query, key)
