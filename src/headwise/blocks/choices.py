"""The norms, feed-forward networks and dropouts that a recipe may name.

A new norm is its own file in blocks/ and one name in the union here. A norm of another package is
found through the entry points `headwise.norms` (settings/added_kinds.py).
"""

from typing import Annotated, Literal, get_args

from pydantic import Field
from torch import nn

from headwise.blocks.batch_norm import Batch
from headwise.blocks.declaration import FeedForwardKind, NormKind
from headwise.blocks.dropout import DropRate
from headwise.blocks.feed_forward import Gated, Gelu, Relu, Silu
from headwise.blocks.normalization import Layer, Rms
from headwise.blocks.power_norm import Power
from headwise.errors import SettingsError
from headwise.settings import Settings
from headwise.settings.added_kinds import OpenChoice, all_kinds
from headwise.settings.kind import Words, name_kinds

NORM_GROUP = "headwise.norms"

Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
NormSettings = Annotated[Layer | Rms | Power | Batch, OpenChoice(NORM_GROUP, NormKind)]
FeedForwardSettings = Annotated[Relu | Gelu | Silu | Gated, Field(discriminator="kind")]
NORMS: tuple[type[NormKind], ...] = get_args(get_args(NormSettings)[0])
FEED_FORWARDS: tuple[type[FeedForwardKind], ...] = get_args(get_args(FeedForwardSettings)[0])
DEFAULT_NORM, DEFAULT_FEED_FORWARD = Layer(), Relu()

__all__ = [
    "DEFAULT_FEED_FORWARD",
    "DEFAULT_NORM",
    "FEED_FORWARDS",
    "NORMS",
    "NORM_GROUP",
    "Batch",
    "DropoutSettings",
    "EmbeddingSettings",
    "FeedForwardSettings",
    "Gated",
    "Gelu",
    "Layer",
    "NormSettings",
    "Power",
    "Rate",
    "Relu",
    "Rms",
    "Silu",
    "build_feed_forward",
    "build_norm",
    "check_recomputing",
    "hidden_width",
    "name_plain_norms",
    "norm_kinds",
]


def norm_kinds() -> dict[str, type[NormKind]]:
    """Every norm by its name: the built-in ones, then those of installed packages."""
    return all_kinds(NORM_GROUP, NormKind, NORMS)


def name_plain_norms() -> Words:
    """The norms of Headwise that keep no statistics of the tokens they have seen."""
    return name_kinds(NormKind, "norm", lambda kind: not kind.counts_tokens)


def check_recomputing(norm: NormKind, recompute: str) -> None:
    """Refuse `training.recompute=blocks` together with a norm with statistics: it would count a
    batch twice."""
    if norm.counts_tokens and recompute == "blocks":
        able = name_plain_norms()
        raise SettingsError(
            f"training.recompute=blocks runs each block twice, and norm.kind={norm.kind} would "
            "count its "
            "batch twice; set training.recompute=nothing, or use "
            f"{able[0]}",
            f"training.recompute=blocks 使每个块运行两次，norm.kind={norm.kind} "
            "会把同一批统计两次；"
            f"请设 training.recompute=nothing，或用 {able[1]}",
        )


class EmbeddingSettings(Settings):
    """The embeddings of tokens, and how they are shared."""

    tied: Literal["all", "output", "none"] = "all"
    """all: source, target and output share one matrix (needs a shared vocabulary); output: target
    and output; none."""
    scaled: bool = True
    """Multiply by √dim, as the paper does."""


class DropoutSettings(Settings):
    """Dropout rates while training."""

    residual: DropRate = 0.1
    """Of the output of each sub-layer, before it is added."""
    embedding: DropRate = 0.1
    """Of the sum of embedding and position."""
    attention: Rate = 0.0
    """Of attention weights; on a CPU the fused kernel cannot be used then."""
    hidden: DropRate = 0.0
    """Of the hidden layer of the feed-forward network."""


def build_norm(settings: NormKind, *, dim: int) -> nn.Module:
    return settings.build(dim=dim)


def hidden_width(settings: FeedForwardKind, *, dim: int) -> int:
    return settings.hidden_width(dim=dim)


def build_feed_forward(settings: FeedForwardKind, *, dim: int, dropout_rate: float) -> nn.Module:
    return settings.build(dim=dim, dropout_rate=dropout_rate)
