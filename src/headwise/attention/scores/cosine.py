"""The cosine attention score: the cosine of the angle between query and key, times a learned scale.

scale · q · k / (|q| |k|)          Graves et al. 2014
"""

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from headwise.attention.scores.comparison import Score, bound
from headwise.attention.scores.declaration import ScoreKind
from headwise.initialization import InitialWeights, zeros
from headwise.settings.kind import Words


class CosineScore(nn.Module):
    """The cosine of the angle between query and key; `scale` (1 / temperature) is the initial value
    of a learned factor."""

    def __init__(self, *, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.log_scale = nn.Parameter(torch.zeros(()))

    def initial_weights(self) -> InitialWeights:
        return [(self.log_scale, zeros)]

    def forward(
        self, q: Float[Tensor, "*batch query dim"], k: Float[Tensor, "*batch key dim"]
    ) -> Float[Tensor, "*batch query key"]:
        # A vector of zeros has no direction: its cosine is 0, and the bound keeps its gradient
        # finite. The squares of shorter vectors would underflow.
        q, k = (
            F.normalize(x, dim=-1, eps=1e-6 if x.dtype == torch.float32 else 1e-100)
            for x in (bound(q), bound(k))
        )
        return self.scale * self.log_scale.exp().to(q.dtype) * (q @ k.transpose(-2, -1))


class CosineSettings(ScoreKind):
    kind: Literal["cosine"] = "cosine"
    scale: float = Field(default=10.0, ge=1e-6, le=1e6, allow_inf_nan=False)
    """Initial value of the learned factor, 1 / temperature."""

    title: ClassVar[Words] = ("cosine", "余弦")
    summary: ClassVar[Words] = ("The angle between query and key.", "查询与键的夹角。")
    paper: ClassVar[str] = "Graves et al. 2014, Neural Turing Machines"
    formula: ClassVar[str] = "scale · q · k / (|q| |k|)"
    same_width: ClassVar[bool] = True
    number: ClassVar[str] = "scale"

    def build(self, *, query_dim: int, key_dim: int) -> Score:
        return CosineScore(scale=self.scale)
