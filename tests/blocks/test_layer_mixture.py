"""A learned mixture of layers: the sum, one layer alone, gradients to every score."""

import pytest
import torch

from headwise.blocks.layer_mixture import LayerMixture
from headwise.randomness import torch_generator
from tests.blocks.filled import fill


def _layers(count: int) -> list[torch.Tensor]:
    generator = torch_generator("layers")
    return [torch.randn(2, 5, 7, dtype=torch.float64, generator=generator) for _ in range(count)]


def test_it_begins_with_the_mean() -> None:
    layers = _layers(3)
    torch.testing.assert_close(LayerMixture(3).double()(layers), torch.stack(layers).mean(0))


def test_one_layer_alone_when_its_score_is_far_above_the_others() -> None:
    mixture = LayerMixture(3).double()
    layers = _layers(3)
    with torch.no_grad():
        mixture.layer_scores.copy_(torch.tensor([0.0, 800.0, 0.0]))
        mixture.gain.fill_(3)
    torch.testing.assert_close(mixture(layers), 3 * layers[1])


def test_it_is_the_formula_and_every_score_learns() -> None:
    mixture = fill(LayerMixture(3).double(), "mixture")
    layers = _layers(3)
    raised = mixture.layer_scores.exp()
    wanted = mixture.gain * sum(raised[j] / raised.sum() * layers[j] for j in range(3))
    found = mixture(layers)
    torch.testing.assert_close(found, wanted)
    found.square().sum().backward()
    assert (mixture.layer_scores.grad != 0).all()
    assert float(mixture.weights.detach().sum()) == pytest.approx(1)
