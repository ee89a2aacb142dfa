"""The norms, feed-forward parts and dropouts a recipe may name, and the one place that builds them."""

from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from headwise.blocks.batch_norm import BatchNorm
from headwise.blocks.feed_forward import FeedForward, GatedFeedForward
from headwise.blocks.normalization import LayerNorm, RMSNorm
from headwise.blocks.power_norm import PowerNorm
from headwise.errors import SettingsError
from headwise.settings import Settings

Rate = Annotated[float, Field(ge=0.0, lt=1.0)]


class Layer(Settings):
    """Layer normalisation."""

    kind: Literal["layer"] = "layer"
    place: Literal["before", "after"] = "before"
    """Before the sub-layer (pre-norm) or after it (post-norm, the original paper)."""
    epsilon: float = Field(default=1e-5, ge=1e-20, le=1)


class Rms(Settings):
    """Root-mean-square normalisation: no centring, no shift."""

    kind: Literal["rms"] = "rms"
    place: Literal["before", "after"] = "before"
    """Before the sub-layer (pre-norm) or after it (post-norm)."""
    epsilon: float = Field(default=1e-6, ge=1e-20, le=1)


class Power(Settings):
    """Power normalisation: divides by running root mean squares of features over tokens."""

    kind: Literal["power"] = "power"
    place: Literal["before", "after"] = "before"
    """Before the sub-layer (pre-norm) or after it (post-norm)."""
    epsilon: float = Field(default=1e-5, ge=1e-20, le=1)
    decay: float = Field(default=0.9, gt=0, lt=1)
    """How much of the running statistics a batch leaves."""
    warmup: int = Field(default=4000, ge=0, le=10**12)
    """Batches in which the batch's own statistics are used."""


class Batch(Settings):
    """Batch normalisation over tokens, for comparison."""

    kind: Literal["batch"] = "batch"
    place: Literal["before", "after"] = "before"
    """Before the sub-layer (pre-norm) or after it (post-norm)."""
    epsilon: float = Field(default=1e-5, ge=1e-20, le=1)
    momentum: float = Field(default=0.1, gt=0, le=1)
    """How much of a batch joins the running statistics."""


NormSettings = Annotated[Layer | Rms | Power | Batch, Field(discriminator="kind")]


def check_recomputing(norm: NormSettings, recompute: str) -> None:
    """Refuse `training.recompute=blocks` beside a norm that counts what it sees: it would see, and divide by, something else the second time."""
    if isinstance(norm, Power | Batch) and recompute == "blocks":
        raise SettingsError(
            f"training.recompute=blocks runs each block twice, and norm.kind={norm.kind} would count its batch twice; "
            "set training.recompute=nothing, or use norm.kind=layer or rms",
            f"training.recompute=blocks 使每个块运行两次，norm.kind={norm.kind} 会把同一批统计两次；"
            "请设 training.recompute=nothing，或用 norm.kind=layer、rms",
        )


class Relu(Settings):
    """Two matrices with max(0, ·) between."""

    kind: Literal["relu"] = "relu"
    hidden: int | None = Field(default=None, ge=1)
    """Width of the hidden layer; 4 × dim unless said."""


class Gelu(Settings):
    """Two matrices with x·Φ(x) between."""

    kind: Literal["gelu"] = "gelu"
    hidden: int | None = Field(default=None, ge=1)
    """Width of the hidden layer; 4 × dim unless said."""


class Gated(Settings):
    """SwiGLU: a gate multiplies the hidden layer."""

    kind: Literal["gated"] = "gated"
    hidden: int | None = Field(default=None, ge=1)
    """Width of the hidden layer; 8/3 × dim (the same number of weights as 4 × dim plain), rounded up to 8."""


FeedForwardSettings = Annotated[Relu | Gelu | Gated, Field(discriminator="kind")]


class EmbeddingSettings(Settings):
    """Vectors of tokens, and how they are shared."""

    tied: Literal["all", "output", "none"] = "all"
    """all: source, target and output share one matrix (needs a shared vocabulary); output: target and output; none."""
    scaled: bool = True
    """Multiply by √dim, as the paper does."""


class DropoutSettings(Settings):
    """What is forgotten while training, and how often."""

    residual: Rate = 0.1
    """Of each sub-layer's output, before it is added."""
    embedding: Rate = 0.1
    """Of the sum of embedding and position."""
    attention: Rate = 0.0
    """Of attention weights; on a CPU this gives up the fused kernel."""
    hidden: Rate = 0.0
    """Of the feed-forward part's hidden layer."""


def build_norm(settings: NormSettings, *, dim: int) -> nn.Module:
    match settings:
        case Layer():
            return LayerNorm(dim, epsilon=settings.epsilon)
        case Rms():
            return RMSNorm(dim, epsilon=settings.epsilon)
        case Power():
            return PowerNorm(
                dim, epsilon=settings.epsilon, decay=settings.decay, warmup=settings.warmup
            )
        case Batch():
            return BatchNorm(dim, epsilon=settings.epsilon, momentum=settings.momentum)


def hidden_width(settings: FeedForwardSettings, *, dim: int) -> int:
    if settings.hidden is not None:
        return settings.hidden
    return 4 * dim if settings.kind != "gated" else -(-8 * dim // 24) * 8


def build_feed_forward(
    settings: FeedForwardSettings, *, dim: int, dropout_rate: float
) -> nn.Module:
    hidden = hidden_width(settings, dim=dim)
    match settings:
        case Relu() | Gelu():
            return FeedForward(dim, hidden, activation=settings.kind, dropout_rate=dropout_rate)
        case Gated():
            return GatedFeedForward(dim, hidden, dropout_rate=dropout_rate)
