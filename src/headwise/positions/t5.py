"""Positions as learned numbers for buckets of distances: near ones singly, far ones in growing groups (T5).

    score(i, j) ← score(i, j) + B[head, bucket(j − i)]

Raffel et al. 2020. Half of the buckets hold one distance each, the other half widen geometrically up to `max_distance`, beyond which
all distances share the last. The encoder has buckets for both directions, the decoder, which never looks ahead, gives all of them
to the past. One table serves all layers of a stack; cross-attention has none, since places in two languages are not apart by any
distance. Any length can be read; beyond `max_distance`, far is far.

T5 does not divide its products by √head_dim and starts with smaller query weights instead. Here kernels always divide, and the
bias is added after: with W_q larger by √head_dim the two are the same function.

Tested against: transformers' T5, buckets and bias; buckets worked by hand.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.attention.biases import DistanceBias
from headwise.attention.multi_head import Need
from headwise.initialization import InitialWeights, zeros


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


class BucketRelation(nn.Module):
    """What self-attention is told: a learned bias by distance; the same module stands in all layers of a stack."""

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

    def place(
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
        bucket = distance_buckets(
            distance,
            num_buckets=self.num_buckets,
            max_distance=self.max_distance,
            is_causal=self.is_causal,
        )
        return DistanceBias(self.bucket_bias[:, bucket], first=-self.max_distance, offset=offset)
