"""Rotary positions: queries and keys are rotated by an angle that grows with their position.

    (a, b) ← (a cos mθ − b sin mθ,  a sin mθ + b cos mθ)
    for each pair of dimensions, θ_i = base^(−2i / head_dim)

Su et al. 2021 (RoFormer). Rotating both sides leaves only the difference of the two angles: q_m ·
k_n depends on m − n only, and lengths of vectors do not change. Nothing is learned and nothing is
added, so every kernel that compares queries with keys can use it. Which dimensions form a pair is a
convention: `halves` pairs i with i + head_dim/2 (Llama, GPT-NeoX), `interleaved` 2i with 2i + 1
(the paper, GPT-J). The two are equal up to a fixed permutation of the dimensions, but weights
cannot be exchanged between them. Any length can be computed; far past the trained one the slowest
angles are new to the model, and quality falls.

Tested against: transformers' Llama and GPT-J, the dependence on m − n alone, lengths.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from headwise.attention.multi_head import Need, Relation
from headwise.errors import UsageError
from headwise.positions.declaration import PositionKind
from headwise.settings.kind import Words

Pairing = Literal["halves", "interleaved"]


def rotate(
    x: Float[Tensor, "batch head time head_dim"],
    position: Int[Tensor, "batch time"],
    *,
    base: float = 10000.0,
    pairing: Pairing = "halves",
) -> Float[Tensor, "batch head time head_dim"]:
    """Angles are computed where they are needed, in fp32: this is cheap beside the products, and
    there is no table with a maximal length."""
    head_dim = x.shape[-1]
    rates = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float32, device=x.device) / head_dim)
    angles = position[:, None, :, None].to(rates.dtype) * rates
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    if pairing == "halves":
        first, second = x.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
    first, second = x[..., 0::2], x[..., 1::2]
    return torch.stack([first * cos - second * sin, first * sin + second * cos], dim=-1).flatten(-2)


@dataclass(frozen=True)
class RotaryRelation:
    """The relation for self-attention: rotated queries and keys."""

    base: float = 10000.0
    pairing: Pairing = "halves"
    kind: str = "rotary"
    needs: Need = "rotations"

    def encode(
        self,
        q: Float[Tensor, "batch head time head_dim"],
        k: Float[Tensor, "batch head time head_dim"],
        v: Float[Tensor, "batch head time head_dim"],
        position: Int[Tensor, "batch time"],
        *,
        length: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        q, k = (rotate(x, position, base=self.base, pairing=self.pairing) for x in (q, k))
        return q, k, v

    def bias(
        self, q: Float[Tensor, "batch head query head_dim"], *, num_keys: int, offset: int
    ) -> None:
        return None


class Rotary(PositionKind):
    """Queries and keys are rotated by their position; nothing is learned."""

    kind: Literal["rotary"] = "rotary"
    base: float = Field(default=10000.0, gt=1.0)
    """Longest wavelength, over 2π: larger for longer texts."""
    pairing: Literal["halves", "interleaved"] = "halves"
    """Which dimensions form a pair: i with i + half (Llama) or neighbours (the paper, GPT-J)."""

    title: ClassVar[Words] = ("rotary (Su 2021)", "旋转 RoPE（Su 2021）")
    summary: ClassVar[Words] = (
        "Queries and keys are turned by an angle that grows with their position.",
        "查询与键按位置旋转一个角度。",
    )
    paper: ClassVar[str] = "Su et al. 2021, RoFormer"
    needs: ClassVar[Need] = "rotations"
    formula: ClassVar[str] = (
        "(a, b) ← (a cos p θ_i − b sin p θ_i, a sin p θ_i + b cos p θ_i),  θ_i = base^(−2i/dim)"
    )

    def build_relations(
        self, *, num_layers: int, dim: int, num_heads: int, is_causal: bool
    ) -> Sequence[Relation | None]:
        head_dim = dim // num_heads
        if head_dim % 2 != 0:
            raise UsageError(
                f"position.kind=rotary turns pairs of dimensions, but {num_heads} heads of "
                f"dim={dim} "
                f"have {head_dim} each; choose a number of heads that leaves an even width",
                f"position.kind=rotary 旋转成对的维度，而 dim={dim} 分成 {num_heads} 个头后每头 "
                f"{head_dim} 维；"
                "请选使每头维数为偶数的头数",
            )
        return [RotaryRelation(self.base, self.pairing)] * num_layers
