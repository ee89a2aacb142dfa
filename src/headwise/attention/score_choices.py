"""The scores, ways to weights and windows over the source a recipe may name inside `attention: {kind: full, …}`, and what builds them."""

from typing import Annotated, Literal

from pydantic import Field

from headwise.attention.kernels.scored import Score
from headwise.attention.local_position import LocalWindow, MonotonicWindow, PredictiveWindow
from headwise.attention.normalizers import Entmax, Hard, Normalizer, Softmax, Sparsemax
from headwise.attention.scores import (
    AdditiveScore,
    BilinearScore,
    ConcatScore,
    CosineScore,
    GaussianScore,
    LocationScore,
    dot_scores,
    scaled_dot_scores,
)
from headwise.errors import UsageError
from headwise.settings import Settings


class DotSettings(Settings):
    kind: Literal["dot"] = "dot"


class ScaledDotSettings(Settings):
    kind: Literal["scaled_dot"] = "scaled_dot"


class AdditiveSettings(Settings):
    kind: Literal["additive"] = "additive"
    hidden: int = Field(default=64, ge=1, le=65536)
    """Width of the layer that compares."""


class ConcatSettings(Settings):
    kind: Literal["concat"] = "concat"
    hidden: int = Field(default=64, ge=1, le=65536)
    """Width of the layer that compares."""


class BilinearSettings(Settings):
    """Luong's name for it is general."""

    kind: Literal["bilinear", "general"] = "bilinear"


class CosineSettings(Settings):
    kind: Literal["cosine"] = "cosine"
    scale: float = Field(default=10.0, ge=1e-6, le=1e6, allow_inf_nan=False)
    """How sharply the angle counts, to begin with: 1 / temperature."""


class LocationSettings(Settings):
    kind: Literal["location"] = "location"
    max_length: int = Field(default=512, ge=1, le=65536)
    """Places that can be named; longer rows are refused."""


class GaussianSettings(Settings):
    kind: Literal["gaussian"] = "gaussian"
    width: float | None = Field(default=None, ge=1e-6, le=1e6, allow_inf_nan=False)
    """How far a key counts, to begin with; null: dim^¼, as sharp as scaled_dot."""


ScoreSettings = Annotated[
    DotSettings
    | ScaledDotSettings
    | AdditiveSettings
    | ConcatSettings
    | BilinearSettings
    | CosineSettings
    | LocationSettings
    | GaussianSettings,
    Field(discriminator="kind"),
]


class SoftmaxSettings(Settings):
    kind: Literal["softmax"] = "softmax"


class SparsemaxSettings(Settings):
    kind: Literal["sparsemax"] = "sparsemax"


class EntmaxSettings(Settings):
    """With α = 1.5."""

    kind: Literal["entmax"] = "entmax"


class HardSettings(Settings):
    kind: Literal["hard"] = "hard"
    gradient: Literal["straight_through", "gumbel"] = "straight_through"
    """Whose gradient it learns by: the softmax's, or that of a drawn softmax."""
    temperature: float = Field(default=1.0, ge=1e-6, le=1e6, allow_inf_nan=False)
    """Of that softmax."""


WeightsSettings = Annotated[
    SoftmaxSettings | SparsemaxSettings | EntmaxSettings | HardSettings, Field(discriminator="kind")
]


class LocalMonotonicSettings(Settings):
    kind: Literal["local_m"] = "local_m"
    half_width: int = Field(default=10, ge=0, le=1_000_000)
    """Luong's D: keys on each side of the centre."""


class LocalPredictiveSettings(Settings):
    kind: Literal["local_p"] = "local_p"
    half_width: int = Field(default=10, ge=1, le=1_000_000)
    """Luong's D: keys on each side of the centre."""
    deviation: float | None = Field(default=None, ge=1e-6, le=1e6, allow_inf_nan=False)
    """σ of the Gaussian; null: half_width / 2."""


LocalWindowSettings = Annotated[
    LocalMonotonicSettings | LocalPredictiveSettings, Field(discriminator="kind")
]


def build_score(settings: ScoreSettings, *, query_dim: int, key_dim: int) -> Score:
    """A function or module of (q, k); for multi-head attention both widths are a head's."""
    same_width = isinstance(
        settings, DotSettings | ScaledDotSettings | CosineSettings | GaussianSettings
    )
    if same_width and query_dim != key_dim:
        raise UsageError(
            f"queries of {query_dim} numbers and keys of {key_dim} cannot be compared by score {settings.kind}, which needs "
            "the same width; give both the same, or use additive, concat or bilinear",
            f"查询有 {query_dim} 个数，键有 {key_dim} 个数，不能用 {settings.kind} 打分，它要求宽度相同；"
            "请使两者宽度一致，或改用 additive、concat、bilinear",
        )
    match settings:
        case DotSettings():
            return dot_scores
        case ScaledDotSettings():
            return scaled_dot_scores
        case AdditiveSettings():
            return AdditiveScore(query_dim, key_dim, hidden=settings.hidden)
        case ConcatSettings():
            return ConcatScore(query_dim, key_dim, hidden=settings.hidden)
        case BilinearSettings():
            return BilinearScore(query_dim, key_dim)
        case CosineSettings():
            return CosineScore(scale=settings.scale)
        case LocationSettings():
            return LocationScore(query_dim, max_length=settings.max_length)
        case GaussianSettings():
            return GaussianScore(
                width=query_dim**0.25 if settings.width is None else settings.width
            )


def build_normalizer(settings: WeightsSettings) -> Normalizer:
    match settings:
        case SoftmaxSettings():
            return Softmax()
        case SparsemaxSettings():
            return Sparsemax()
        case EntmaxSettings():
            return Entmax()
        case HardSettings():
            return Hard(settings.gradient, settings.temperature)


def build_local_window(settings: LocalWindowSettings, *, head_dim: int) -> LocalWindow:
    match settings:
        case LocalMonotonicSettings():
            return MonotonicWindow(settings.half_width)
        case LocalPredictiveSettings():
            return PredictiveWindow(
                head_dim, half_width=settings.half_width, deviation=settings.deviation
            )
