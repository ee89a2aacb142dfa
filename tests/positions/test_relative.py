"""Vectors of distances: the formulas written out with a [query, key, dim] table, gradients
included."""

import math

import pytest
import torch

from headwise.attention.kernels.full import FullAttention
from headwise.attention.masks import causal
from headwise.positions.relative import RelativeRelation

HEADS, HEAD_DIM, LIMIT = 3, 5, 2


@pytest.mark.parametrize(("num_queries", "offset"), [(7, 0), (3, 4), (1, 6)])
def test_the_formulas_written_out(
    num_queries: int, offset: int, generator: torch.Generator
) -> None:
    num_keys = num_queries + offset
    relation = RelativeRelation(HEAD_DIM, limit=LIMIT, values=True).double()
    assert relation.distance_values is not None
    with torch.no_grad():
        for parameter in relation.parameters():
            parameter.normal_(generator=generator)
    q, k, v = (
        torch.randn(
            2, HEADS, time, HEAD_DIM, generator=generator, dtype=torch.float64
        ).requires_grad_()
        for time in (num_queries, num_keys, num_keys)
    )
    given = FullAttention()(
        q, k, v, causal(offset), bias=relation.bias(q, num_keys=num_keys, offset=offset)
    )
    distance = torch.arange(num_keys) - torch.arange(num_queries)[:, None] - offset
    by_pair = [table[distance.clamp(-LIMIT, LIMIT) + LIMIT] for table in relation.parameters()]
    keys, values = (x[:, :, None] + table for x, table in zip((k, v), by_pair, strict=True))
    scores = (q[:, :, :, None] * keys).sum(-1) / math.sqrt(HEAD_DIM)
    weights = scores.masked_fill(distance > 0, -torch.inf).softmax(-1)
    expected = (weights[..., None] * values).sum(3)
    torch.testing.assert_close(given, expected)
    leaves = [q, k, v, *relation.parameters()]
    results = [
        torch.autograd.grad(output.square().sum(), leaves, retain_graph=True)
        for output in (given, expected)
    ]
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)
