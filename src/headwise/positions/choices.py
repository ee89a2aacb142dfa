"""The position encodings a recipe may name under `position: {kind: …}`, and the one place that builds them."""

from typing import Annotated, Literal

from pydantic import Field

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


def build_positions(settings: PositionSettings, *, dim: int) -> SinusoidalPositions | LearnedPositions:
    match settings:
        case Sinusoidal():
            return SinusoidalPositions(dim, layout=settings.layout)
        case Learned():
            return LearnedPositions(dim, max_length=settings.max_length)
