"""The feed-forward part against its formulas written out with matrix products."""

import math

import pytest
import torch

from headwise.blocks.feed_forward import FeedForward, GatedFeedForward

DIM, HIDDEN = 5, 11


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_plain(activation: str, generator: torch.Generator) -> None:
    part = FeedForward(DIM, HIDDEN, activation=activation).double()
    x = torch.randn(2, 3, DIM, generator=generator, dtype=torch.float64)
    wide = x @ part.widen.weight.T + part.widen.bias
    gates = {"relu": (wide > 0).double(), "gelu": (1 + torch.erf(wide / math.sqrt(2))) / 2}
    expected = (wide * gates[activation]) @ part.narrow.weight.T + part.narrow.bias
    torch.testing.assert_close(part(x), expected)


def test_gated(generator: torch.Generator) -> None:
    part = GatedFeedForward(DIM, HIDDEN).double()
    x = torch.randn(2, 3, DIM, generator=generator, dtype=torch.float64)
    gate, wide = x @ part.gate_widen.weight[:HIDDEN].T, x @ part.gate_widen.weight[HIDDEN:].T
    expected = (gate / (1 + (-gate).exp()) * wide) @ part.narrow.weight.T
    torch.testing.assert_close(part(x), expected)


@pytest.mark.parametrize("kind", ["plain", "gated"])
def test_each_token_by_itself_and_dropout_in_training_only(
    kind: str, generator: torch.Generator
) -> None:
    part = (
        FeedForward(DIM, HIDDEN, activation="relu", dropout_rate=0.5)
        if kind == "plain"
        else GatedFeedForward(DIM, HIDDEN, dropout_rate=0.5)
    )
    x = torch.randn(2, 3, DIM, generator=generator)
    assert not part(x).equal(part(x))
    part.eval()
    torch.testing.assert_close(part(x)[1, 2], part(x[1:, 2:])[0, 0])
