"""The dot product of query and key as an attention score, as it is or divided by √dim.

dot         q · k             Luong et al. 2015; large for long vectors
scaled_dot  q · k / √dim      Vaswani et al. 2017; variance one whatever the dim
"""

import math
from typing import ClassVar, Literal

from jaxtyping import Float
from torch import Tensor

from headwise.attention.scores.comparison import Score, bound
from headwise.attention.scores.declaration import ScoreKind
from headwise.settings.kind import Words


def dot_scores(
    q: Float[Tensor, "*batch query dim"], k: Float[Tensor, "*batch key dim"]
) -> Float[Tensor, "*batch query key"]:
    return bound(q) @ bound(k).transpose(-2, -1)


def scaled_dot_scores(
    q: Float[Tensor, "*batch query dim"], k: Float[Tensor, "*batch key dim"]
) -> Float[Tensor, "*batch query key"]:
    return dot_scores(q, k) / math.sqrt(q.shape[-1])


class DotSettings(ScoreKind):
    kind: Literal["dot"] = "dot"

    title: ClassVar[Words] = ("dot product q·k", "点积 q·k")
    summary: ClassVar[Words] = ("The product of query and key.", "查询与键的点积。")
    paper: ClassVar[str] = "Luong et al. 2015, Effective Approaches to Attention-based NMT"
    formula: ClassVar[str] = "q · k"
    same_width: ClassVar[bool] = True

    def build(self, *, query_dim: int, key_dim: int) -> Score:
        return dot_scores


class ScaledDotSettings(ScoreKind):
    kind: Literal["scaled_dot"] = "scaled_dot"

    title: ClassVar[Words] = ("scaled dot product q·k/√d", "缩放点积 q·k/√d")
    summary: ClassVar[Words] = (
        "The product over √dim: its variance is one whatever the width.",
        "点积除以 √dim：无论宽度多少，方差为一。",
    )
    paper: ClassVar[str] = "Vaswani et al. 2017, Attention Is All You Need"
    formula: ClassVar[str] = "q · k / √dim"
    same_width: ClassVar[bool] = True

    def build(self, *, query_dim: int, key_dim: int) -> Score:
        return scaled_dot_scores
