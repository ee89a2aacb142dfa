"""T5 relative positions: a learned bias for each head and bucket of distances.

    score(i, j) ← score(i, j) + B[head, bucket(j − i)]

Raffel et al. 2020. Half of the buckets hold one distance each, the nearest ones; the other half
widen geometrically up to `max_distance`, beyond which all distances share the last bucket. The
encoder has buckets for both directions; the decoder, which never attends to later tokens, uses all
of them for earlier ones. One table serves all layers of a stack; cross-attention has none, because
distances between positions of two languages are undefined. Any length can be read.

T5 does not divide its products by √head_dim and starts with smaller query weights instead. Here
kernels always divide, and the bias is added after: with W_q larger by √head_dim the two are the
same function.

Tested against: transformers' T5, buckets and bias; buckets worked by hand.
"""

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from headwise.attention.biases import DistanceBias
from headwise.attention.multi_head import Need, Relation
from headwise.errors import SettingsError
from headwise.initialization import InitialWeights, zeros
from headwise.positions.declaration import PositionKind
from headwise.settings.kind import Words


def distance_buckets(
    distance: Int[Tensor, "*distance"], *, num_buckets: int, max_distance: int, is_causal: bool
) -> Int[Tensor, "*distance"]:
    """The bucket of each distance key − query."""
    ahead = torch.zeros_like(distance)
    if not is_causal:
        num_buckets //= 2
        ahead = (distance > 0) * num_buckets
    far = (-distance).clamp(min=0) if is_causal else distance.abs()
    num_single = num_buckets // 2
    growth = torch.log(far.clamp(min=1).float() / num_single) / math.log(max_distance / num_single)
    shared = (num_single + (growth * (num_buckets - num_single)).long()).clamp(max=num_buckets - 1)
    return ahead + torch.where(far < num_single, far, shared)


class T5Relation(nn.Module):
    """The relation for self-attention: a learned bias by distance; all layers of a stack share the
    module."""

    kind = "t5"
    needs: Need = "distances"

    def __init__(
        self, num_heads: int, *, num_buckets: int, max_distance: int, is_causal: bool
    ) -> None:
        super().__init__()
        self.num_buckets, self.max_distance, self.is_causal = num_buckets, max_distance, is_causal
        self.bucket_bias = nn.Parameter(torch.zeros(num_heads, num_buckets))

    def initial_weights(self) -> InitialWeights:
        return [(self.bucket_bias, zeros)]

    shows_fixed_part = True
    """Without a model only the buckets are shown, which are not learned."""

    def find_buckets(self, distance: Int[Tensor, "*distance"]) -> Int[Tensor, "*distance"]:
        return distance_buckets(
            distance,
            num_buckets=self.num_buckets,
            max_distance=self.max_distance,
            is_causal=self.is_causal,
        )

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
    ) -> DistanceBias:
        last = 0 if self.is_causal else self.max_distance
        distance = torch.arange(-self.max_distance, last + 1, device=q.device)
        bucket = self.find_buckets(distance)
        return DistanceBias(self.bucket_bias[:, bucket], first=-self.max_distance, offset=offset)


class Buckets(PositionKind):
    """T5: a learned number per head and bucket of distances."""

    kind: Literal["t5"] = "t5"
    num_buckets: int = Field(default=32, ge=4, le=1024, multiple_of=4)
    """Number of learned values per head."""
    max_distance: int = Field(default=128, ge=2, le=65536)
    """All distances from here on share a bucket."""

    title: ClassVar[Words] = ("T5 buckets (Raffel 2020)", "T5 分桶（Raffel 2020）")
    summary: ClassVar[Words] = (
        "A learned number for each head and bucket of distances is added to the score.",
        "按距离分桶，每个头为每个桶学一个数，加到分数上。",
    )
    paper: ClassVar[str] = "Raffel et al. 2020, Exploring the Limits of Transfer Learning with T5"
    needs: ClassVar[Need] = "distances"
    formula: ClassVar[str] = "score(i, j) ← score(i, j) + B[head, bucket(j − i)]"

    @model_validator(mode="after")
    def _check_distance(self) -> "Buckets":
        if self.max_distance <= self.num_buckets // 2:
            raise SettingsError(
                f"max_distance={self.max_distance} leaves nothing for {self.num_buckets} buckets "
                "to "
                f"share; choose more than {self.num_buckets // 2}, or fewer num_buckets",
                f"max_distance={self.max_distance} 使 {self.num_buckets} 个桶无可共用；"
                f"请大于 {self.num_buckets // 2}，或减小 num_buckets",
            )
        return self

    def build_relations(
        self, *, num_layers: int, dim: int, num_heads: int, is_causal: bool
    ) -> Sequence[Relation | None]:
        shared = T5Relation(
            num_heads,
            num_buckets=self.num_buckets,
            max_distance=self.max_distance,
            is_causal=is_causal,
        )
        return [shared] * num_layers
