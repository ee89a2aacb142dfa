"""The position encodings a recipe may name under `position: {kind: …}`, and the one place that builds them."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field
from torch import nn

from headwise.positions.learned import LearnedPositions
from headwise.positions.sinusoidal import SinusoidalPositions
from headwise.settings import Settings


class Sinusoidal(Settings):
    """Sines and cosines; nothing to learn, any length."""

    kind: Literal["sinusoidal"] = "sinusoidal"
    layout: Literal["interleaved", "halves"] = "interleaved"
    """Sines and cosines in turn (the paper) or all sines first (Marian, fairseq)."""


class Learned(Settings):
    """A learned vector for each position up to `max_length`."""

    kind: Literal["learned"] = "learned"
    max_length: int = Field(default=512, ge=1, le=65536)
    """Longer sequences are refused."""


PositionSettings = Annotated[Sinusoidal | Learned, Field(discriminator="kind")]


def build_positions(settings: PositionSettings, *, dim: int) -> nn.Module | None:
    """What is added to the embeddings of tokens; None for kinds that speak to attention instead."""
    match settings:
        case Sinusoidal():
            return SinusoidalPositions(dim, layout=settings.layout)
        case Learned():
            return LearnedPositions(dim, max_length=settings.max_length)


def build_relations(
    settings: PositionSettings, *, num_layers: int, dim: int, num_heads: int, is_causal: bool
) -> Sequence[Any]:
    """For each layer of a stack what its self-attention is told (attention/multi_head.Relation), or None for kinds that are added."""
    match settings:
        case Sinusoidal() | Learned():
            return [None] * num_layers
