"""The feed-forward network of a layer: two linear maps with a non-linearity between them.

    plain:  y = activation(x W₁ + b₁) W₂ + b₂                activation = ReLU, GELU or SiLU
    gated:  y = (silu(x W_g) ⊙ (x W₁)) W₂                    Shazeer 2020 (SwiGLU)

Vaswani et al. 2017, section 3.3. Attention moves information between tokens; the feed-forward
network transforms each token by itself.

Tested against: the formulas written out with matrix products.
"""

from collections.abc import Callable
from typing import ClassVar, Literal

import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from headwise.blocks.declaration import FeedForwardKind
from headwise.blocks.dropout import drop
from headwise.blocks.linear_relu import linear_relu
from headwise.initialization import InitialWeights, initial_linear, xavier
from headwise.settings.kind import Words

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
}


class FeedForward(nn.Module):
    def __init__(
        self, dim: int, hidden: int, *, activation: str, dropout_rate: float = 0.0
    ) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.dropout_rate = dropout_rate
        self.widen = nn.Linear(dim, hidden)
        self.narrow = nn.Linear(hidden, dim)

    def initial_weights(self) -> InitialWeights:
        yield from initial_linear(self.widen, xavier())
        yield from initial_linear(self.narrow, xavier())

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        if self.activation is F.relu and x.device.type == "cuda":
            hidden = linear_relu(x, self.widen.weight, self.widen.bias)
        else:
            hidden = self.activation(self.widen(x))
        return self.narrow(drop(hidden, self.dropout_rate, training=self.training))


class GatedFeedForward(nn.Module):
    def __init__(self, dim: int, hidden: int, *, dropout_rate: float = 0.0) -> None:
        super().__init__()
        self.dropout_rate = dropout_rate
        self.gate_widen = nn.Linear(dim, 2 * hidden, bias=False)
        self.narrow = nn.Linear(hidden, dim, bias=False)

    def initial_weights(self) -> InitialWeights:
        yield from initial_linear(self.gate_widen, xavier(2))
        yield from initial_linear(self.narrow, xavier())

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        gate, wide = self.gate_widen(x).chunk(2, dim=-1)
        return self.narrow(drop(F.silu(gate) * wide, self.dropout_rate, training=self.training))


class Relu(FeedForwardKind):
    """Two matrices with max(0, ·) between."""

    kind: Literal["relu"] = "relu"

    title: ClassVar[Words] = ("ReLU", "ReLU")
    summary: ClassVar[Words] = (
        "Two matrices with max(0, ·) between.",
        "两个矩阵，中间取 max(0, ·)。",
    )
    paper: ClassVar[str] = "Vaswani et al. 2017, Attention Is All You Need"
    formula: ClassVar[str] = "max(0, x W₁ + b₁) W₂ + b₂"

    def build(self, *, dim: int, dropout_rate: float) -> nn.Module:
        return FeedForward(
            dim, self.hidden_width(dim=dim), activation=self.kind, dropout_rate=dropout_rate
        )


class Gelu(FeedForwardKind):
    """Two matrices with x·Φ(x) between."""

    kind: Literal["gelu"] = "gelu"

    title: ClassVar[Words] = ("GELU", "GELU")
    summary: ClassVar[Words] = ("Two matrices with x·Φ(x) between.", "两个矩阵，中间取 x·Φ(x)。")
    paper: ClassVar[str] = "Hendrycks & Gimpel 2016, Gaussian Error Linear Units"
    formula: ClassVar[str] = "gelu(x W₁ + b₁) W₂ + b₂"

    def build(self, *, dim: int, dropout_rate: float) -> nn.Module:
        return FeedForward(
            dim, self.hidden_width(dim=dim), activation=self.kind, dropout_rate=dropout_rate
        )


class Silu(FeedForwardKind):
    """Two matrices with x·sigmoid(x) between, which Marian calls swish."""

    kind: Literal["silu"] = "silu"

    title: ClassVar[Words] = ("SiLU (swish)", "SiLU（swish）")
    summary: ClassVar[Words] = (
        "Two matrices with x·sigmoid(x) between, as in OPUS-MT models.",
        "两个矩阵，中间取 x·sigmoid(x)，如 OPUS-MT 模型。",
    )
    paper: ClassVar[str] = "Ramachandran et al. 2017, Searching for Activation Functions"
    formula: ClassVar[str] = "silu(x W₁ + b₁) W₂ + b₂"

    def build(self, *, dim: int, dropout_rate: float) -> nn.Module:
        return FeedForward(
            dim, self.hidden_width(dim=dim), activation=self.kind, dropout_rate=dropout_rate
        )


class Gated(FeedForwardKind):
    """SwiGLU: a gate multiplies the hidden layer."""

    kind: Literal["gated"] = "gated"
    hidden: int | None = Field(default=None, ge=1)
    """Width of the hidden layer; 8/3 × dim (the same number of weights as 4 × dim plain), rounded
    up to 8."""

    title: ClassVar[Words] = ("gated (SwiGLU)", "门控（SwiGLU）")
    summary: ClassVar[Words] = ("A gate multiplies the hidden layer.", "用门与隐藏层相乘。")
    paper: ClassVar[str] = "Shazeer 2020, GLU Variants Improve Transformer"
    formula: ClassVar[str] = "(silu(x W_g) ⊙ (x W₁)) W₂"

    def hidden_width(self, *, dim: int) -> int:
        return -(-8 * dim // 24) * 8 if self.hidden is None else self.hidden

    def build(self, *, dim: int, dropout_rate: float) -> nn.Module:
        return GatedFeedForward(dim, self.hidden_width(dim=dim), dropout_rate=dropout_rate)
