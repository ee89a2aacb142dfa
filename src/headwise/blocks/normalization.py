"""Normalisation: bring every token's vector back to a standard scale, so that depth does not blow it up.

    layer:  y = (x − mean(x)) / √(var(x) + ε) · gain + shift        Ba, Kiros & Hinton 2016
    rms:    y =  x / √(mean(x²) + ε) · gain                          Zhang & Sennrich 2019

Both look at one token alone, so neither batch nor length matters. RMS drops the centring: a little cheaper, as good.
Norms that look over all tokens of a batch (`TokenNorm`: power_norm.py, batch_norm.py) must be told which of them are filling.

Tested against: the formulas in double precision.
"""

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from headwise.initialization import InitialWeights, ones, zeros


class TokenNorm(nn.Module, ABC):
    """A norm whose statistics are those of a batch's tokens while it learns, and fixed numbers afterwards."""

    @abstractmethod
    def forward(
        self, x: Float[Tensor, "*batch dim"], real: Bool[Tensor, "*batch"] | None = None
    ) -> Float[Tensor, "*batch dim"]:
        """`real`: which tokens count; None: all of them."""


def apply_norm(
    norm: nn.Module, x: Float[Tensor, "*batch dim"], real: Bool[Tensor, "*batch"] | None
) -> Float[Tensor, "*batch dim"]:
    """Any norm; only those that look over tokens are told which are real."""
    return norm(x, real) if isinstance(norm, TokenNorm) else norm(x)


class LayerNorm(nn.Module):
    def __init__(self, dim: int, *, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gain = nn.Parameter(torch.ones(dim))
        self.shift = nn.Parameter(torch.zeros(dim))

    def initial_weights(self) -> InitialWeights:
        return [(self.gain, ones), (self.shift, zeros)]

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        return F.layer_norm(x, self.gain.shape, self.gain, self.shift, self.epsilon)


class RMSNorm(nn.Module):
    def __init__(self, dim: int, *, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gain = nn.Parameter(torch.ones(dim))

    def initial_weights(self) -> InitialWeights:
        return [(self.gain, ones)]

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        return F.rms_norm(x, self.gain.shape, self.gain, self.epsilon)
