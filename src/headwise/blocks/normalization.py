"""Layer norm and RMS norm: the vector of every token is scaled to a standard size.

    layer:  y = (x − mean(x)) / √(var(x) + ε) · gain + shift        Ba, Kiros & Hinton 2016
    rms:    y =  x / √(mean(x²) + ε) · gain                          Zhang & Sennrich 2019

So values do not grow with depth. Both norms use one token only, so neither batch nor length
matters. RMS norm drops the centring: slightly cheaper, with equal quality. Norms with statistics
over the tokens of a batch (`TokenNorm`: power_norm.py, batch_norm.py) must know which tokens are
padding.

Tested against: the formulas in double precision.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor, nn

from headwise.blocks.declaration import NormKind
from headwise.initialization import InitialWeights, ones, zeros
from headwise.settings.kind import Words


class TokenNorm(nn.Module, ABC):
    """A norm with statistics over the tokens of a batch while training, and fixed numbers
    afterwards."""

    @abstractmethod
    def forward(
        self, x: Float[Tensor, "*batch dim"], real: Bool[Tensor, "*batch"] | None = None
    ) -> Float[Tensor, "*batch dim"]:
        """`real`: which tokens are not padding; None: all of them."""


def apply_norm(
    norm: nn.Module, x: Float[Tensor, "*batch dim"], real: Bool[Tensor, "*batch"] | None
) -> Float[Tensor, "*batch dim"]:
    """Apply any norm; only those with statistics over tokens use `real`."""
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


class Layer(NormKind):
    """Layer normalisation."""

    kind: Literal["layer"] = "layer"
    epsilon: float = Field(default=1e-5, ge=1e-20, le=1)

    title: ClassVar[Words] = ("layer norm", "层归一化")
    summary: ClassVar[Words] = (
        "Mean 0 and variance 1 over the features of each token.",
        "使每个词元的各特征均值为 0、方差为 1。",
    )
    paper: ClassVar[str] = "Ba, Kiros & Hinton 2016, Layer Normalization"
    formula: ClassVar[str] = "(x − mean(x)) / √(var(x) + ε) · gain + shift"

    def build(self, *, dim: int) -> nn.Module:
        return LayerNorm(dim, epsilon=self.epsilon)


class Rms(NormKind):
    """Root-mean-square normalisation: no centring, no shift."""

    kind: Literal["rms"] = "rms"
    epsilon: float = Field(default=1e-6, ge=1e-20, le=1)

    title: ClassVar[Words] = ("RMS norm", "RMS 归一化")
    summary: ClassVar[Words] = (
        "Each token divided by the root mean square of its features.",
        "每个词元除以其各特征的均方根。",
    )
    paper: ClassVar[str] = "Zhang & Sennrich 2019, Root Mean Square Layer Normalization"
    formula: ClassVar[str] = "x / √(mean(x²) + ε) · gain"

    def build(self, *, dim: int) -> nn.Module:
        return RMSNorm(dim, epsilon=self.epsilon)
