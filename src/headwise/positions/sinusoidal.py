"""Sinusoidal positions: each position gets sines and cosines of geometrically growing wavelengths.

    PE(pos, 2i)     = sin(pos / 10000^(2i/dim))
    PE(pos, 2i + 1) = cos(pos / 10000^(2i/dim))

Vaswani et al. 2017, section 3.5. PE(pos + k) is a rotation of PE(pos) by an angle that depends on k
only, so a linear map can express relative positions; there are no weights, and any length can be
computed. `halves` puts all sines before all cosines (as Marian and fairseq do): the same encoding
up to a permutation of the dimensions.

Tested against: the formula element by element, the rotation property, transformers' Marian table.
"""

from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.positions.declaration import PositionKind
from headwise.settings.kind import Words


def sinusoidal_table(
    length: int, dim: int, *, layout: str = "interleaved"
) -> Float[Tensor, "time dim"]:
    # The device is given explicitly: on the default meta device this arithmetic would load torch's
    # compiler without need.
    cpu = torch.device("cpu")
    rates = 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64, device=cpu) / dim)
    angles = torch.arange(length, dtype=torch.float64, device=cpu)[:, None] * rates
    sines, cosines = angles.sin(), angles[:, : dim // 2].cos()
    if layout == "halves":
        return torch.cat([sines, cosines], dim=1).float()
    table = torch.empty(length, dim, dtype=torch.float64, device=cpu)
    table[:, 0::2], table[:, 1::2] = sines, cosines
    return table.float()


class SinusoidalPositions(nn.Module):
    """Without learned weights; the table grows when a longer sequence comes."""

    table: Tensor

    def __init__(
        self, dim: int, *, layout: str = "interleaved", initial_length: int = 1024
    ) -> None:
        super().__init__()
        self.dim, self.layout = dim, layout
        self.register_buffer(
            "table", sinusoidal_table(initial_length, dim, layout=layout), persistent=False
        )

    def forward(
        self, position: Int[Tensor, "batch time"], *, length: int
    ) -> Float[Tensor, "batch time dim"]:
        """`length` bounds every position and is known without reading the tensor."""
        if length > self.table.shape[0]:
            table = sinusoidal_table(2 * length, self.dim, layout=self.layout)
            self.table = table.to(self.table)
        return self.table[position]


class Sinusoidal(PositionKind):
    """Sines and cosines; nothing is learned, any length."""

    kind: Literal["sinusoidal"] = "sinusoidal"
    layout: Literal["interleaved", "halves"] = "interleaved"
    """Sines and cosines in turn (the paper) or all sines first (Marian, fairseq)."""

    title: ClassVar[Words] = ("sines and cosines (Vaswani 2017)", "正弦与余弦（Vaswani 2017）")
    summary: ClassVar[Words] = (
        "Sines and cosines of growing wavelengths are added to the embeddings.",
        "把波长递增的正弦与余弦加到词嵌入上。",
    )
    paper: ClassVar[str] = "Vaswani et al. 2017, Attention Is All You Need"
    formula: ClassVar[str] = (
        "PE(p, 2i) = sin(p / 10000^(2i/dim)),  PE(p, 2i+1) = cos(p / 10000^(2i/dim))"
    )

    def build_added(self, *, dim: int) -> nn.Module:
        return SinusoidalPositions(dim, layout=self.layout)
