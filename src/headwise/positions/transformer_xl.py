"""Transformer-XL relative positions: a score from sinusoids of the distance, so that keys may come
from earlier segments than the queries.

    score(i, j) = [ (q_i + u) · k_j  +  (q_i + w) · W_r R(i − j) ] / √head_dim

Dai et al. 2019. The score has four terms: content (q·k), distance (q·W_r R), a bias for the key
(u·k) and a bias for the distance (w·W_r R). R(d) are the sines and cosines of sinusoidal.py at a
distance instead of a position; W_r, u and w are learned in each layer. Because R depends on
distances only, a key cached from an earlier segment stays valid: `offset` is the number of keys
before the first query.

No [query, key, dim] table is formed: (q + w) is multiplied with W_r R of every distance, [query,
distance], and row i is then read from column −i on, which is one reshape (the paper's shift). Any
length can be computed; distances beyond those of training may be handled badly.

Tested against: the formula pair by pair, gradients included; keys that precede equal one longer
sequence.
"""

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.attention.multi_head import Need, Relation
from headwise.initialization import PROJECTION_GAIN, InitialWeights, initial_linear, xavier, zeros
from headwise.positions.declaration import PositionKind
from headwise.settings.kind import Words


def distance_waves(distance: Float[Tensor, " distance"], dim: int) -> Float[Tensor, "distance dim"]:
    """All sines, then all cosines."""
    rates = 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float32, device=distance.device) / dim)
    angles = distance[:, None] * rates
    return torch.cat([angles.sin(), angles[:, : dim // 2].cos()], dim=1)


def shift_rows(
    table: Float[Tensor, "batch head query distance"], num_keys: int
) -> Float[Tensor, "batch head query key"]:
    """From distances −(num_queries − 1 + offset) … num_keys − 1 − offset of each query to its keys
    0 … num_keys − 1.

    Key j of query i stands in column j − i + num_queries − 1, so each row starts one column earlier
    than the one above.
    """
    num_queries, num_distances = table.shape[-2:]
    if num_queries == 1:
        return table
    shorter = num_queries * (num_distances - 1)
    rows = table.flatten(-2).narrow(-1, num_queries - 1, shorter)
    return rows.unflatten(-1, (num_queries, num_distances - 1))[..., :num_keys]


class TransformerXLRelation(nn.Module):
    """The relation of one self-attention layer: u is added to the queries, and the other terms are
    a bias for every pair."""

    kind = "transformer_xl"
    needs: Need = "pairs"

    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        self.dim, self.num_heads = dim, num_heads
        self.distance = nn.Linear(dim, dim, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(num_heads, 1, dim // num_heads))
        self.distance_bias = nn.Parameter(torch.zeros(num_heads, 1, dim // num_heads))

    def initial_weights(self) -> InitialWeights:
        yield self.content_bias, zeros
        yield self.distance_bias, zeros
        yield from initial_linear(self.distance, xavier(gain=PROJECTION_GAIN))

    shows_fixed_part = True
    """Without a model only the waves are shown, which are not learned."""

    def table_by_distance(
        self, distance: Int[Tensor, " distance"]
    ) -> Float[Tensor, "distance dim"]:
        """The waves; the published R is of the distance back, i − j."""
        return distance_waves(-distance.float(), self.dim)

    def encode(
        self,
        q: Float[Tensor, "batch head time head_dim"],
        k: Float[Tensor, "batch head time head_dim"],
        v: Float[Tensor, "batch head time head_dim"],
        position: Int[Tensor, "batch time"],
        *,
        length: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        return q + self.content_bias.to(q.dtype), k, v

    def bias(
        self, q: Float[Tensor, "batch head query head_dim"], *, num_keys: int, offset: int
    ) -> Float[Tensor, "batch head query key"]:
        first = 1 - q.shape[2] - offset
        # R of i − j, the distance back: minus key − query.
        back = -torch.arange(first, num_keys - offset, dtype=torch.float32, device=q.device)
        waves = self.distance(distance_waves(back, self.dim).to(self.distance.weight.dtype))
        by_head = waves.unflatten(-1, (self.num_heads, -1)).transpose(0, 1).to(q.dtype)
        asked = q + (self.distance_bias - self.content_bias).to(q.dtype)
        return shift_rows(asked @ by_head.transpose(-2, -1) / math.sqrt(q.shape[-1]), num_keys)


class TransformerXL(PositionKind):
    """Waves of the distance through their own projection, and two biases; ready for a memory of
    earlier keys."""

    kind: Literal["transformer_xl"] = "transformer_xl"

    title: ClassVar[Words] = ("waves of distance (Transformer-XL)", "距离的波（Transformer-XL）")
    summary: ClassVar[Words] = (
        "Waves of the distance pass through a projection of their own, with two biases.",
        "距离的正弦波经过自己的投影，另有两个偏置。",
    )
    paper: ClassVar[str] = "Dai et al. 2019, Transformer-XL"
    needs: ClassVar[Need] = "pairs"
    formula: ClassVar[str] = "score(i, j) = [(q_i + u) · k_j + (q_i + w) · W R(i − j)] / √dim"

    def build_relations(
        self, *, num_layers: int, dim: int, num_heads: int, is_causal: bool
    ) -> Sequence[Relation | None]:
        return [TransformerXLRelation(dim, num_heads) for _ in range(num_layers)]
