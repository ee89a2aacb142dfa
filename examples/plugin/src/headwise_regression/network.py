"""The model of a regression: y = w · tanh(U x + b) + c."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from headwise.initialization import InitialWeights, initial_linear, initialize, xavier


class Network(nn.Module):
    """One hidden layer."""

    part_names: ClassVar = {
        "inner": ("hidden layer", "隐藏层"),
        "outer": ("output", "输出层"),
    }
    """What `headwise describe` calls them."""

    def __init__(self, num_inputs: int, hidden: int) -> None:
        super().__init__()
        self.inner = nn.Linear(num_inputs, hidden)
        self.outer = nn.Linear(hidden, 1)

    def initial_weights(self) -> InitialWeights:
        """How the weights begin."""
        for layer in (self.inner, self.outer):
            yield from initial_linear(layer, xavier())

    def forward(self, x: Tensor) -> Tensor:
        """From [point, column] to [point]."""
        return self.outer(torch.tanh(self.inner(x)))[:, 0]


def build_network(num_inputs: int, hidden: int, generator: torch.Generator | None) -> Network:
    """A network with random weights, or with none yet where they will be loaded."""
    network = Network(num_inputs, hidden)
    if generator is not None:
        initialize(network, generator)
    return network
