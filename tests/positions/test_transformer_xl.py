"""Transformer-XL's score: the formula pair by pair, and a memory that equals one longer
sequence."""

import math

import pytest
import torch

from headwise.positions.sinusoidal import sinusoidal_table
from headwise.positions.transformer_xl import TransformerXLRelation, distance_waves

HEADS, DIM = 3, 12
HEAD_DIM = DIM // HEADS


def make(generator: torch.Generator) -> TransformerXLRelation:
    relation = TransformerXLRelation(DIM, HEADS).double()
    with torch.no_grad():
        for parameter in relation.parameters():
            parameter.normal_(generator=generator)
    return relation


@pytest.mark.parametrize(("num_queries", "offset"), [(5, 0), (3, 4), (1, 0), (1, 6)])
def test_the_formula_pair_by_pair(
    num_queries: int, offset: int, generator: torch.Generator
) -> None:
    relation, num_keys = make(generator), num_queries + offset
    raw = torch.randn(
        2, HEADS, num_queries, HEAD_DIM, generator=generator, dtype=torch.float64
    ).requires_grad_()
    k = torch.randn(2, HEADS, num_keys, HEAD_DIM, generator=generator, dtype=torch.float64)
    q, _, _ = relation.encode(
        raw, raw, raw, torch.zeros(2, num_queries, dtype=torch.long), length=num_keys
    )
    bias = relation.bias(q, num_keys=num_keys, offset=offset)
    given = q @ k.transpose(-1, -2) / math.sqrt(HEAD_DIM) + bias
    expected = torch.zeros_like(given)
    u, w = relation.content_bias[:, 0], relation.distance_bias[:, 0]
    for i in range(num_queries):
        for j in range(num_keys):
            wave = distance_waves(torch.tensor([float(i + offset - j)]), DIM).double()
            r = relation.distance(wave).view(HEADS, HEAD_DIM)
            pair = ((raw[:, :, i] + u) * k[:, :, j]).sum(-1) + ((raw[:, :, i] + w) * r).sum(-1)
            expected[:, :, i, j] = pair / math.sqrt(HEAD_DIM)
    torch.testing.assert_close(given, expected)
    leaves = [raw, *relation.parameters()]
    results = [
        torch.autograd.grad(scores.square().sum(), leaves, retain_graph=True)
        for scores in (given, expected)
    ]
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def test_waves_are_the_sinusoids_of_a_distance() -> None:
    expected = sinusoidal_table(7, DIM, layout="halves")
    torch.testing.assert_close(distance_waves(torch.arange(7.0), DIM), expected)


def test_keys_that_precede_equal_a_longer_sequence(generator: torch.Generator) -> None:
    relation = make(generator)
    q = torch.randn(2, HEADS, 7, HEAD_DIM, generator=generator, dtype=torch.float64)
    whole = relation.bias(q, num_keys=7, offset=0)
    torch.testing.assert_close(relation.bias(q[:, :, 4:], num_keys=7, offset=4), whole[:, :, 4:])
