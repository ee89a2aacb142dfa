"""Norms against their formulas in double precision."""

import pytest
import torch
from torch import nn

from headwise.blocks.normalization import LayerNorm, RMSNorm


@pytest.mark.parametrize("epsilon", [1e-5, 0.5])
def test_layer_norm(epsilon: float, generator: torch.Generator) -> None:
    norm = LayerNorm(7, epsilon=epsilon).double()
    nn.init.normal_(norm.gain, generator=generator)
    nn.init.normal_(norm.shift, generator=generator)
    x = 3 + torch.randn(2, 5, 7, generator=generator, dtype=torch.float64)
    centred = x - x.mean(-1, keepdim=True)
    expected = (
        centred / (centred.square().mean(-1, keepdim=True) + epsilon).sqrt() * norm.gain
        + norm.shift
    )
    torch.testing.assert_close(norm(x), expected)


@pytest.mark.parametrize("epsilon", [1e-6, 0.5])
def test_rms_norm(epsilon: float, generator: torch.Generator) -> None:
    norm = RMSNorm(7, epsilon=epsilon).double()
    nn.init.normal_(norm.gain, generator=generator)
    x = 3 + torch.randn(2, 5, 7, generator=generator, dtype=torch.float64)
    expected = x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt() * norm.gain
    torch.testing.assert_close(norm(x), expected)


@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
def test_scale_of_the_input_does_not_matter(
    kind: type[nn.Module], generator: torch.Generator
) -> None:
    x = torch.randn(3, 5, 11, generator=generator, dtype=torch.float64)
    norm = kind(11, epsilon=1e-12).double()
    torch.testing.assert_close(norm(17 * x), norm(x))
