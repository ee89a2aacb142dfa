"""Vectors from letters: the formulas in plain Python and double precision; what fills the row
changes nothing."""

import math

import pytest
import torch

from headwise.blocks.character_encoder import CharacterEncoder, Highway
from headwise.randomness import torch_generator
from tests.blocks.filled import fill


def _encoder() -> CharacterEncoder:
    module = CharacterEncoder(13, letter_dim=3, filters=(2, 5, 7), num_highways=2, dim=11).double()
    return fill(module, "letters")


def _dot(row: list[float], x: list[float]) -> float:
    return math.fsum(a * b for a, b in zip(row, x, strict=True))


def _linear(layer: torch.nn.Linear, x: list[float]) -> list[float]:
    return [
        _dot(row, x) + bias
        for row, bias in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)
    ]


def _written_out(module: CharacterEncoder, word: list[int]) -> list[float]:
    scale = math.sqrt(module.table.embedding_dim)
    letters = [[scale * one for one in module.table.weight[sign].tolist()] for sign in word]
    letters += [[0.0] * 3] * max(0, len(module.filters) - len(letters))
    y = []
    for width, layer in enumerate(module.filters, start=1):
        places = range(max(1, len(word) - width + 1))
        for row, bias in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True):
            # A filter is [letter_dim, width]: at each place its columns meet the letters there.
            found = [
                bias
                + math.fsum(row[d][k] * letters[at + k][d] for d in range(3) for k in range(width))
                for at in places
            ]
            y.append(max(0.0, *found) if len(found) > 1 else max(0.0, found[0]))
    for highway in module.highways:
        gate = [1 / (1 + math.exp(-one)) for one in _linear(highway.gate, y)]
        change = [max(0.0, one) for one in _linear(highway.change, y)]
        y = [g * c + (1 - g) * own for g, c, own in zip(gate, change, y, strict=True)]
    return _linear(module.narrow, y)


@torch.no_grad()
def test_it_is_the_formula() -> None:
    module = _encoder()
    words = [[1, 5, 2], [1, 2], [1, 12, 7, 7, 3, 2], [4]]
    letters = torch.tensor([word + [0] * (7 - len(word)) for word in words])
    found = module(letters)
    for row, word in zip(found.tolist(), words, strict=True):
        assert row == pytest.approx(_written_out(module, word), abs=1e-12)


@torch.no_grad()
def test_filling_changes_nothing() -> None:
    module = _encoder()
    letters = torch.tensor([[1, 5, 2, 0], [1, 8, 9, 2]])
    longer = torch.nn.functional.pad(letters, (0, 5))
    torch.testing.assert_close(module(letters), module(longer), rtol=0, atol=1e-14)


@torch.no_grad()
def test_a_highway_with_a_closed_gate_lets_everything_pass() -> None:
    highway = Highway(5).double()
    highway.gate.weight.zero_()
    x = torch.randn(3, 5, dtype=torch.float64, generator=torch_generator("x"))
    highway.gate.bias.fill_(-60)
    torch.testing.assert_close(highway(x), x)
    highway.gate.bias.fill_(60)
    torch.testing.assert_close(highway(x), torch.relu(highway.change(x)))
