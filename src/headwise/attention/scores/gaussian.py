"""The Gaussian attention score: the negative squared distance of query and key.

    −|q − k|² / (2 width²)             Nadaraya & Watson 1964

Its softmax is kernel regression.
"""

from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from headwise.attention.scores.comparison import Score, bound
from headwise.attention.scores.declaration import ScoreKind
from headwise.initialization import InitialWeights, zeros
from headwise.settings.kind import Words

FEW = 2**12
"""Up to this size differences are squared and summed directly; above it torch computes the
distances, whose squares differ by a rounding error."""


class GaussianScore(nn.Module):
    """Near keys get more weight: its softmax is kernel regression. `width` is the initial value of
    a learned width."""

    def __init__(self, *, width: float) -> None:
        super().__init__()
        self.width = width
        self.log_width = nn.Parameter(torch.zeros(()))

    def initial_weights(self) -> InitialWeights:
        return [(self.log_width, zeros)]

    def forward(
        self, q: Float[Tensor, "*batch query dim"], k: Float[Tensor, "*batch key dim"]
    ) -> Float[Tensor, "*batch query key"]:
        q, k = bound(q), bound(k)
        # Each distance is computed by itself: |q|² + |k|² − 2 q · k would be a small difference of
        # large squares for numbers far from zero (years, seconds), and after subtracting their
        # mean, masked keys would influence the result. Not in the half precision of autocast.
        with torch.autocast(q.device.type, enabled=False):
            if q.numel() * k.shape[-2] <= FEW:
                square = (q.unsqueeze(-2) - k.unsqueeze(-3)).square().sum(-1)
            else:
                square = torch.cdist(q, k, compute_mode="donot_use_mm_for_euclid_dist").square()
            return square / (-2 * (self.width * self.log_width.exp().to(q.dtype)).square())


class GaussianSettings(ScoreKind):
    kind: Literal["gaussian"] = "gaussian"
    width: float | None = Field(default=None, ge=1e-6, le=1e6, allow_inf_nan=False)
    """Initial width of the Gaussian; null: dim^¼, as sharp as scaled_dot."""

    title: ClassVar[Words] = ("gaussian −|q−k|²/2w²", "高斯 −|q−k|²/2w²")
    summary: ClassVar[Words] = ("Near keys count more than far ones.", "近的键比远的键更重要。")
    paper: ClassVar[str] = "Nadaraya 1964; Watson 1964"
    formula: ClassVar[str] = "−|q − k|² / (2 width²)"
    same_width: ClassVar[bool] = True
    number: ClassVar[str] = "width"

    @classmethod
    def small(cls, kind: str, *, num_keys: int, hidden: int) -> "ScoreKind":
        return cls(width=1.0)

    def build(self, *, query_dim: int, key_dim: int) -> Score:
        return GaussianScore(width=query_dim**0.25 if self.width is None else self.width)
