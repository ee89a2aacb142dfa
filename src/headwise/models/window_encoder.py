"""A window encoder: one feed-forward network over each word and n words on either side.

    x + narrow(relu(widen([x₋ₙ … x … xₙ])))

Tested: it sees its neighbours and no further; packed rows = sentences one by one.
"""

from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.blocks.dropout import drop
from headwise.initialization import InitialWeights, initial_linear, xavier
from headwise.settings.part_names import PartNames


class Neighbours(nn.Module):
    """A fully connected network over each token and `reach` on either side; zeros beyond."""

    part_names: ClassVar[PartNames] = {
        "widen": ("feed-forward over a window", "窗口上的前馈神经网络"),
        "narrow": ("feed-forward over a window", "窗口上的前馈神经网络"),
    }

    def __init__(self, dim: int, *, reach: int, hidden: int, dropout_rate: float) -> None:
        super().__init__()
        self.reach, self.dropout_rate = reach, dropout_rate
        self.widen = nn.Linear((2 * reach + 1) * dim, hidden)
        self.narrow = nn.Linear(hidden, dim)

    def initial_weights(self) -> InitialWeights:
        yield from initial_linear(self.widen, xavier())
        yield from initial_linear(self.narrow, xavier())

    def forward(
        self, x: Float[Tensor, "row time dim"], segment: Int[Tensor, "row time"]
    ) -> Float[Tensor, "row time dim"]:
        seen = []
        for step in range(-self.reach, self.reach + 1):
            # What rolled over the end of the row, or is of another sentence, is set to zero.
            place = torch.arange(x.shape[1], device=x.device) + step
            own = (torch.roll(segment, -step, 1) == segment) & (place >= 0) & (place < x.shape[1])
            seen.append(torch.roll(x, -step, 1) * own[..., None])
        hidden = torch.relu(self.widen(torch.cat(seen, dim=-1)))
        return x + self.narrow(drop(hidden, self.dropout_rate, training=self.training))
