"""ALiBi: a bias that lowers the score of a key in proportion to its distance from the query.

    score(i, j) ← score(i, j) − slope_head · |i − j|

Press, Smith & Lewis 2022 (Attention with Linear Biases). If the number of heads is a power of two,
the slopes are 2^(−8/heads), its square, its cube, …; for other numbers, those of the next lower
power of two come first, then every other slope of the next higher one. Nothing is learned, and
nothing is added to the embeddings. The paper has causal attention only; in an encoder the bias here
is the same on both sides, so left and right cannot be distinguished by it. Any length can be read:
distances beyond those of training only lower the score further.

Tested against: transformers' BLOOM, the published slopes, and a model trained at 64 that reads 512
(benchmarks/bench_positions.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.attention.biases import DistanceBias
from headwise.attention.multi_head import Need, Relation
from headwise.positions.declaration import PositionKind
from headwise.settings.kind import Words


def alibi_slopes(num_heads: int, *, device: torch.device | None = None) -> Float[Tensor, " head"]:
    """As published, for any number of heads; computed where it is used, so that converting a model
    to another dtype does not round it."""
    power = 1 << (num_heads.bit_length() - 1)
    steps = torch.arange(1, power + 1, dtype=torch.float32, device=device) / power
    between = torch.arange(
        1, 2 * (num_heads - power) + 1, 2, dtype=torch.float32, device=device
    ) / (2 * power)
    return torch.exp2(-8.0 * torch.cat([steps, between]))


@dataclass(frozen=True)
class AlibiRelation:
    """The relation for self-attention: a bias that falls with the distance."""

    num_heads: int
    kind: str = "alibi"
    needs: Need = "distances"

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
        first = 1 - q.shape[2] - offset
        distance = torch.arange(first, num_keys - offset, dtype=torch.float32, device=q.device)
        slopes = alibi_slopes(self.num_heads, device=q.device)
        return DistanceBias(-slopes[:, None] * distance.abs(), first=first, offset=offset)


class Alibi(PositionKind):
    """The score falls with the distance, at a fixed slope per head; can read longer texts than
    those of training."""

    kind: Literal["alibi"] = "alibi"

    title: ClassVar[Words] = ("ALiBi (Press 2022)", "ALiBi（Press 2022）")
    summary: ClassVar[Words] = (
        "The score falls with the distance, at a fixed slope for each head.",
        "分数随距离下降，每个头的斜率固定。",
    )
    paper: ClassVar[str] = "Press, Smith & Lewis 2022, Train Short, Test Long"
    needs: ClassVar[Need] = "distances"
    formula: ClassVar[str] = "score(i, j) ← score(i, j) − slope_head · |i − j|"

    def build_relations(
        self, *, num_layers: int, dim: int, num_heads: int, is_causal: bool
    ) -> Sequence[Relation | None]:
        return [AlibiRelation(num_heads)] * num_layers
