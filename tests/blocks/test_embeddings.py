"""Embeddings: the formula with a hand-made table."""

import math

import pytest
import torch
from torch import nn

from headwise.blocks.embeddings import TokenEmbedding
from headwise.positions import LearnedPositions


@pytest.mark.parametrize("scaled", [True, False])
def test_the_formula(scaled: bool) -> None:
    table, positions = nn.Embedding(3, 4), LearnedPositions(4, max_length=2)
    with torch.no_grad():
        table.weight.copy_(torch.arange(12.0).view(3, 4))
        positions.table.weight.copy_(torch.tensor([[0.5] * 4, [-0.5] * 4]))
    embedding = TokenEmbedding(table, positions, scaled=scaled, dropout_rate=0.0)
    x = embedding(torch.tensor([[2, 0]]), torch.tensor([[0, 1]]), length=2)
    factor = math.sqrt(4) if scaled else 1.0
    expected = torch.tensor(
        [[[8.0, 9.0, 10.0, 11.0], [0.0, 1.0, 2.0, 3.0]]]
    ) * factor + torch.tensor([[[0.5], [-0.5]]])
    assert x.equal(expected)


def test_dropout_in_training_only() -> None:
    embedding = TokenEmbedding(
        nn.Embedding(3, 64), LearnedPositions(64, max_length=2), scaled=True, dropout_rate=0.5
    )
    tokens, place = torch.tensor([[1, 2]]), torch.tensor([[0, 1]])
    assert embedding(tokens, place, length=2).eq(0).any()
    assert not embedding.eval()(tokens, place, length=2).eq(0).any()
