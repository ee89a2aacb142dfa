"""The scores, normalizers and windows over the source that a recipe may name inside `attention:
{kind: full, …}`.

A new score is its own file in attention/scores/ and one name in the union here. A score of another
package is found through the entry points `headwise.scores` (settings/added_kinds.py).
"""

from typing import Annotated, get_args

from pydantic import Field

from headwise.attention.local_position import (
    LocalMonotonicSettings,
    LocalPredictiveSettings,
    LocalWindow,
    LocalWindowKind,
)
from headwise.attention.normalizers import (
    EntmaxSettings,
    HardSettings,
    Normalizer,
    NormalizerKind,
    SoftmaxSettings,
    SparsemaxSettings,
)
from headwise.attention.scores.additive import AdditiveSettings
from headwise.attention.scores.bilinear import BilinearSettings
from headwise.attention.scores.comparison import Score
from headwise.attention.scores.concat import ConcatSettings
from headwise.attention.scores.cosine import CosineSettings
from headwise.attention.scores.declaration import ScoreKind
from headwise.attention.scores.dot import DotSettings, ScaledDotSettings
from headwise.attention.scores.gaussian import GaussianSettings
from headwise.attention.scores.location import LocationSettings
from headwise.errors import UsageError
from headwise.settings.added_kinds import FoundKinds, OpenChoice, find_kinds
from headwise.settings.kind import join_words

GROUP = "headwise.scores"

ScoreSettings = Annotated[
    DotSettings
    | ScaledDotSettings
    | AdditiveSettings
    | ConcatSettings
    | BilinearSettings
    | CosineSettings
    | LocationSettings
    | GaussianSettings,
    OpenChoice(GROUP, ScoreKind),
]
WeightsSettings = Annotated[
    SoftmaxSettings | SparsemaxSettings | EntmaxSettings | HardSettings, Field(discriminator="kind")
]
LocalWindowSettings = Annotated[
    LocalMonotonicSettings | LocalPredictiveSettings, Field(discriminator="kind")
]
SCORES: tuple[type[ScoreKind], ...] = get_args(get_args(ScoreSettings)[0])
NORMALIZERS: tuple[type[NormalizerKind], ...] = get_args(get_args(WeightsSettings)[0])
DEFAULT_SCORE, DEFAULT_WEIGHTS = ScaledDotSettings(), SoftmaxSettings()

__all__ = [
    "DEFAULT_SCORE",
    "DEFAULT_WEIGHTS",
    "GROUP",
    "NORMALIZERS",
    "SCORES",
    "AdditiveSettings",
    "BilinearSettings",
    "ConcatSettings",
    "CosineSettings",
    "DotSettings",
    "EntmaxSettings",
    "GaussianSettings",
    "HardSettings",
    "LocalMonotonicSettings",
    "LocalPredictiveSettings",
    "LocalWindowSettings",
    "LocationSettings",
    "ScaledDotSettings",
    "ScoreSettings",
    "SoftmaxSettings",
    "SparsemaxSettings",
    "WeightsSettings",
    "build_local_window",
    "build_normalizer",
    "build_score",
    "find_scores",
    "score_kinds",
]


def score_kinds() -> dict[str, type[ScoreKind]]:
    """Every score by its names: the built-in ones, then those of installed packages."""
    return find_scores().usable


def find_scores() -> FoundKinds[ScoreKind]:
    """The same, and the words of installed packages that cannot be used."""
    return find_kinds(GROUP, ScoreKind, SCORES)


def build_score(settings: ScoreKind, *, query_dim: int, key_dim: int) -> Score:
    """A function or module of (q, k); for multi-head attention both widths are those of a head."""
    if settings.same_width and query_dim != key_dim:
        able = [kind.word() for kind in SCORES if not kind.same_width]
        raise UsageError(
            f"queries of {query_dim} numbers and keys of {key_dim} cannot be compared by score "
            f"{settings.kind}, which needs the same width; give both the same, or use "
            f"{join_words(able, ' or ')}",
            f"查询有 {query_dim} 个数，键有 {key_dim} 个数，不能用 {settings.kind} 打分，"
            "它要求宽度相同；"
            f"请使两者宽度一致，或改用 {join_words(able, ' 或 ', '、')}",
        )
    return settings.build(query_dim=query_dim, key_dim=key_dim)


def build_normalizer(settings: NormalizerKind) -> Normalizer:
    return settings.build()


def build_local_window(settings: LocalWindowKind, *, head_dim: int) -> LocalWindow:
    return settings.build(head_dim=head_dim)
