"""Relative positions: learned vectors for distances are added to keys and values.

    score(i, j) = q_i · (k_j + A_K[clip(j − i)]) / √head_dim
    output(i)   = Σ_j weight(i, j) (v_j + A_V[clip(j − i)])
    clip(d)     = d bounded to −limit … +limit

Shaw, Uszkoreit & Vaswani 2018. Each layer has its own two tables, shared by its heads. The first
part becomes a bias: q is multiplied with the 2 · limit + 1 vectors once, and each pair selects its
number; no [query, key, dim] table exists. The second part needs the attention weights, so it works
only with kernels that form them (`attention.kind=full`); without it (`values: false`) the fused
kernel can be used. Any length can be read: all distances beyond the limit share a vector.

Tested against: the formulas written out with a [query, key, dim] table, gradients included.
"""

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from headwise.attention.biases import VectorBias, distance_columns
from headwise.attention.multi_head import Need, Relation
from headwise.initialization import InitialWeights, normal_by_width
from headwise.positions.declaration import PositionKind
from headwise.settings.kind import Words


class RelativeRelation(nn.Module):
    """The relation of one layer: vectors of distances, for keys and optionally for values."""

    kind = "relative"

    def __init__(self, head_dim: int, *, limit: int, values: bool) -> None:
        super().__init__()
        self.limit = limit
        self.needs: Need = "weights" if values else "pairs"
        self.distance_keys = nn.Parameter(torch.zeros(2 * limit + 1, head_dim))
        self.distance_values = (
            nn.Parameter(torch.zeros(2 * limit + 1, head_dim)) if values else None
        )

    def initial_weights(self) -> InitialWeights:
        yield self.distance_keys, normal_by_width
        if self.distance_values is not None:
            yield self.distance_values, normal_by_width

    def table_by_distance(
        self, distance: Int[Tensor, " distance"]
    ) -> Float[Tensor, "distance head_dim"]:
        """The vectors of the keys."""
        return self.distance_keys[distance.clamp(-self.limit, self.limit) + self.limit]

    def encode(
        self,
        q: Float[Tensor, "batch head time head_dim"],
        k: Float[Tensor, "batch head time head_dim"],
        v: Float[Tensor, "batch head time head_dim"],
        position: Int[Tensor, "batch time"],
        *,
        length: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        return q, k, v

    def bias(
        self, q: Float[Tensor, "batch head query head_dim"], *, num_keys: int, offset: int
    ) -> Float[Tensor, "batch head query key"] | VectorBias:
        by_distance = q @ self.distance_keys.to(q.dtype).T / math.sqrt(q.shape[-1])
        column = distance_columns(
            q.shape[2],
            num_keys,
            first=-self.limit,
            size=2 * self.limit + 1,
            offset=offset,
            device=q.device,
        )
        scores = by_distance.gather(-1, column.expand(*q.shape[:2], -1, -1))
        if self.distance_values is None:
            return scores
        return VectorBias(scores, self.distance_values, first=-self.limit, offset=offset)


class Relative(PositionKind):
    """Shaw: learned vectors of clipped distances, for keys and for values."""

    kind: Literal["relative"] = "relative"
    limit: int = Field(default=16, ge=1, le=4096)
    """Distances are bounded to −limit … +limit."""
    values: bool = True
    """As published; needs attention.kind=full, which forms the weights. If false, the vectors are
    added to the keys only."""

    title: ClassVar[Words] = ("relative vectors (Shaw 2018)", "相对位置向量（Shaw 2018）")
    summary: ClassVar[Words] = (
        "Learned vectors of clipped distances join the keys and the values.",
        "学得的距离向量加到键与值上。",
    )
    paper: ClassVar[str] = (
        "Shaw, Uszkoreit & Vaswani 2018, Self-Attention with Relative Position Representations"
    )
    needs: ClassVar[Need] = "weights"
    variants: ClassVar[dict[str, Need]] = {"values=false": "pairs"}
    formula: ClassVar[str] = "score(i, j) = q_i · (k_j + A[clip(j − i)]) / √dim"

    def build_relations(
        self, *, num_layers: int, dim: int, num_heads: int, is_causal: bool
    ) -> Sequence[Relation | None]:
        return [
            RelativeRelation(dim // num_heads, limit=self.limit, values=self.values)
            for _ in range(num_layers)
        ]
