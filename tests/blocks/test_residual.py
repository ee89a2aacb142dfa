"""The residual connection, both formulas with a known sub-layer."""

import pytest
import torch

from headwise.blocks.normalization import LayerNorm
from headwise.blocks.residual import Residual


def sublayer(x: torch.Tensor) -> torch.Tensor:
    return 3 * x + 1


def test_before(generator: torch.Generator) -> None:
    x, norm = torch.randn(2, 3, 5, generator=generator), LayerNorm(5)
    torch.testing.assert_close(
        Residual(norm, place="before", dropout_rate=0.0)(x, sublayer), x + sublayer(norm(x))
    )


def test_after(generator: torch.Generator) -> None:
    x, norm = torch.randn(2, 3, 5, generator=generator), LayerNorm(5)
    torch.testing.assert_close(
        Residual(norm, place="after", dropout_rate=0.0)(x, sublayer), norm(x + sublayer(x))
    )


@pytest.mark.parametrize("place", ["before", "after"])
def test_dropout_touches_the_sublayer_and_never_the_straight_path(
    place: str, generator: torch.Generator
) -> None:
    x = torch.randn(2, 3, 500, generator=generator)
    residual = Residual(torch.nn.Identity(), place=place, dropout_rate=0.25)
    change = residual(x, lambda _: torch.ones_like(x)) - x
    kept = change.abs() > 0.5
    torch.testing.assert_close(change[kept], torch.full_like(change[kept], 4 / 3))
    assert change[~kept].abs().max() < 1e-6
    assert 0.7 < kept.float().mean() < 0.8
    residual.eval()
    torch.testing.assert_close(residual(x, lambda _: torch.ones_like(x)), x + 1)
