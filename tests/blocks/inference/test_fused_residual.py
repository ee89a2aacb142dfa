"""A stream and its products equal residual connections and modules called one after the other."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.blocks.inference.fused_residual import FusedResidual, norm_before
from headwise.blocks.inference.projection import add_and_norm, project
from headwise.blocks.normalization import LayerNorm, RMSNorm
from headwise.blocks.residual import Residual

ROWS, DIM, HIDDEN = 5, 12, 17


def make_norm(kind: type[LayerNorm] | type[RMSNorm], generator: torch.Generator) -> nn.Module:
    norm = kind(DIM)
    for parameter in norm.parameters():
        nn.init.normal_(parameter, generator=generator)
    return norm


@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
def test_a_projection_is_its_parts(kind: type[LayerNorm], generator: torch.Generator) -> None:
    norm, linear, back = make_norm(kind, generator), nn.Linear(DIM, HIDDEN), nn.Linear(HIDDEN, DIM)
    x = torch.randn(ROWS, DIM, generator=generator)
    hidden = project(x, linear.weight, linear.bias, norm=norm, activation=F.relu)
    torch.testing.assert_close(hidden, linear(norm(x)).relu())
    found = project(hidden, back.weight, back.bias, residual=x, residual_norm=norm)
    torch.testing.assert_close(found, back(hidden) + norm(x))
    for y in (None, torch.randn(ROWS, DIM, generator=generator)):
        total, normed = add_and_norm(x, y, norm)
        torch.testing.assert_close(total, x if y is None else x + y)
        torch.testing.assert_close(normed, norm(total))


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
def test_a_stream_is_a_stack_of_residual_connections(
    kind: type[LayerNorm], place, generator: torch.Generator
) -> None:
    residuals = [
        Residual(make_norm(kind, generator), place=place, dropout_rate=0.0) for _ in range(3)
    ]
    layers = [(nn.Linear(DIM, HIDDEN), nn.Linear(HIDDEN, DIM)) for _ in range(3)]
    last, output = make_norm(kind, generator), nn.Linear(DIM, 7)
    expected = x = torch.randn(ROWS, DIM, generator=generator)
    stream = FusedResidual(x)
    for residual, (widen, narrow) in zip(residuals, layers, strict=True):

        def think(normed: Tensor, widen: nn.Linear = widen, narrow: nn.Linear = narrow) -> Tensor:
            return narrow(widen(normed).relu())

        expected = residual(expected[:, None], think)[:, 0]
        hidden = stream.read(
            widen.weight, widen.bias, norm=norm_before(residual), activation=F.relu
        )
        stream.add(hidden, narrow.weight, narrow.bias, residual=residual)
    final = last if place == "before" else None
    found = stream.read(output.weight, output.bias, norm=final)
    torch.testing.assert_close(found, output(expected if final is None else final(expected)))
