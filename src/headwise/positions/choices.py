"""The position encodings a recipe may name under `position: {kind: …}`, and the one place that builds them."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator
from torch import nn

from headwise.attention.multi_head import Relation
from headwise.errors import SettingsError, UsageError
from headwise.positions.alibi import AlibiRelation
from headwise.positions.continuous import ContinuousRelation, PathDynamics
from headwise.positions.learned import LearnedPositions
from headwise.positions.relative import RelativeRelation
from headwise.positions.rotary import RotaryRelation
from headwise.positions.sinusoidal import SinusoidalPositions
from headwise.positions.t5 import BucketRelation
from headwise.positions.transformer_xl import TransformerXLRelation
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


class Rotary(Settings):
    """Queries and keys are turned by their position; nothing to learn."""

    kind: Literal["rotary"] = "rotary"
    base: float = Field(default=10000.0, gt=1.0)
    """Longest wavelength, over 2π: larger for longer texts."""
    pairing: Literal["halves", "interleaved"] = "halves"
    """Which dimensions form a pair: i with i + half (Llama) or neighbours (the paper, GPT-J)."""


class Alibi(Settings):
    """The score falls with the distance, at a fixed slope per head; reads longer texts than it was trained on."""

    kind: Literal["alibi"] = "alibi"


class Buckets(Settings):
    """T5: a learned number per head and bucket of distances."""

    kind: Literal["t5"] = "t5"
    num_buckets: int = Field(default=32, ge=4, le=1024, multiple_of=4)
    """How many numbers a head learns."""
    max_distance: int = Field(default=128, ge=2, le=65536)
    """From here on all distances share a bucket."""

    @model_validator(mode="after")
    def _check_distance(self) -> "Buckets":
        if self.max_distance <= self.num_buckets // 2:
            raise SettingsError(
                f"max_distance={self.max_distance} leaves nothing for {self.num_buckets} buckets to share; "
                f"choose more than {self.num_buckets // 2}, or fewer num_buckets",
                f"max_distance={self.max_distance} 使 {self.num_buckets} 个桶无可共用；"
                f"请大于 {self.num_buckets // 2}，或减小 num_buckets",
            )
        return self


class Relative(Settings):
    """Shaw: learned vectors of clipped distances, for keys and for values."""

    kind: Literal["relative"] = "relative"
    limit: int = Field(default=16, ge=1, le=4096)
    """Distances are held between −limit and +limit."""
    values: bool = True
    """As published; needs attention.kind=full, which forms the weights. Without, the vectors join the keys only."""


class TransformerXL(Settings):
    """Waves of the distance through their own projection, and two biases; ready for a memory of earlier keys."""

    kind: Literal["transformer_xl"] = "transformer_xl"


class Continuous(Settings):
    """FLOATER: a learned differential equation moves a vector along the sentence."""

    kind: Literal["continuous"] = "continuous"
    delta: float = Field(default=0.01, gt=0, le=1)
    """Time between two places; the larger, the faster an update moves what is far from the start."""
    stride: int = Field(default=16, ge=1, le=1024)
    """Places per Runge–Kutta step; those between are interpolated."""


PositionSettings = Annotated[
    Sinusoidal | Learned | Rotary | Alibi | Buckets | Relative | TransformerXL | Continuous,
    Field(discriminator="kind"),
]


def build_positions(settings: PositionSettings, *, dim: int) -> nn.Module | None:
    """What is added to the embeddings of tokens; None for kinds that speak to attention instead."""
    match settings:
        case Sinusoidal():
            return SinusoidalPositions(dim, layout=settings.layout)
        case Learned():
            return LearnedPositions(dim, max_length=settings.max_length)
        case Continuous():
            return SinusoidalPositions(dim)
        case Rotary() | Alibi() | Buckets() | Relative() | TransformerXL():
            return None


def build_relations(
    settings: PositionSettings, *, num_layers: int, dim: int, num_heads: int, is_causal: bool
) -> Sequence[Relation | None]:
    """For each layer of a stack what its self-attention is told (attention/multi_head.Relation), or None for kinds that are added."""
    match settings:
        case Sinusoidal() | Learned():
            return [None] * num_layers
        case Rotary():
            _require_even(dim // num_heads, dim=dim, num_heads=num_heads)
            return [RotaryRelation(settings.base, settings.pairing)] * num_layers
        case Alibi():
            return [AlibiRelation(num_heads)] * num_layers
        case Buckets():
            shared = BucketRelation(
                num_heads,
                num_buckets=settings.num_buckets,
                max_distance=settings.max_distance,
                is_causal=is_causal,
            )
            return [shared] * num_layers
        case Relative():
            head_dim = dim // num_heads
            return [
                RelativeRelation(head_dim, limit=settings.limit, values=settings.values)
                for _ in range(num_layers)
            ]
        case TransformerXL():
            return [TransformerXLRelation(dim, num_heads) for _ in range(num_layers)]
        case Continuous():
            dynamics = PathDynamics(dim)
            return [
                ContinuousRelation(dim, dynamics, delta=settings.delta, stride=settings.stride)
                for _ in range(num_layers)
            ]


def _require_even(head_dim: int, *, dim: int, num_heads: int) -> None:
    if head_dim % 2 != 0:
        raise UsageError(
            f"position.kind=rotary turns pairs of dimensions, but {num_heads} heads of dim={dim} have {head_dim} each; "
            "choose a number of heads that leaves an even width",
            f"position.kind=rotary 旋转成对的维度，而 dim={dim} 分成 {num_heads} 个头后每头 {head_dim} 维；请选使每头维数为偶数的头数",
        )
