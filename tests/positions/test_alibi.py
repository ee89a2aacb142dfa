"""Slopes: as published for any number of heads, and BLOOM's bias up to what softmax cannot see."""

import pytest
import torch
from transformers.models.bloom.modeling_bloom import build_alibi_tensor

from headwise.positions.alibi import AlibiRelation, alibi_slopes

TIME = 13


def test_the_published_slopes() -> None:
    assert alibi_slopes(8).tolist() == [2.0**-power for power in range(1, 9)]
    torch.testing.assert_close(alibi_slopes(12)[:8], alibi_slopes(8))
    assert alibi_slopes(12)[8:].tolist() == pytest.approx(
        [0.7071, 0.3536, 0.1768, 0.0884], abs=1e-4
    )
    assert alibi_slopes(1).tolist() == [2.0**-8]


@pytest.mark.parametrize("num_heads", [1, 3, 8, 12, 25])
def test_blooms_bias_but_for_a_constant_of_the_row(num_heads: int) -> None:
    q = torch.zeros(1, num_heads, TIME, 4)
    ours = AlibiRelation(num_heads).bias(q, num_keys=TIME, offset=0).dense(TIME, TIME)[0]
    # [head, 1, key]: slope · key.
    theirs = build_alibi_tensor(torch.ones(1, TIME), num_heads, torch.float32)
    hidden = torch.ones(TIME, TIME).triu(1).bool()
    one, other = (
        bias.masked_fill(hidden, -torch.inf).softmax(-1)
        for bias in (ours, theirs.expand(-1, TIME, -1))
    )
    torch.testing.assert_close(one, other)


def test_distance_counts_alike_on_both_sides() -> None:
    bias = AlibiRelation(2).bias(torch.zeros(1, 2, 3, 4), num_keys=5, offset=1).dense(3, 5)[0, 0]
    slope = 2.0**-4
    expected = torch.tensor([[1.0, 0, 1, 2, 3], [2, 1, 0, 1, 2], [3, 2, 1, 0, 1]])
    torch.testing.assert_close(bias, -slope * expected)
