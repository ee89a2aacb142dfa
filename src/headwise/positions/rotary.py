"""Positions as rotations: queries and keys are turned by an angle that grows with their position.

    (a, b) ← (a cos mθ − b sin mθ,  a sin mθ + b cos mθ)        for each pair of dimensions, θ_i = base^(−2i / head_dim)

Su et al. 2021 (RoFormer). Turning both sides leaves of the two angles only their difference: q_m · k_n depends on m − n alone,
and lengths stay as they are. Nothing is learned and nothing is added, so every kernel that compares queries with keys can
use it. Which dimensions form a pair is a convention: `halves` pairs i with i + head_dim/2 (Llama, GPT-NeoX), `interleaved` 2i with
2i + 1 (the paper, GPT-J); the same up to a fixed permutation of the dimensions, but weights do not load across.
Any length can be computed; far past the trained one the slow angles are new to the model, and it reads worse.

Tested against: transformers' Llama and GPT-J, the dependence on m − n alone, lengths.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.attention.multi_head import Need

Pairing = Literal["halves", "interleaved"]


def rotate(
    x: Float[Tensor, "batch head time head_dim"],
    position: Int[Tensor, "batch time"],
    *,
    base: float = 10000.0,
    pairing: Pairing = "halves",
) -> Float[Tensor, "batch head time head_dim"]:
    """Angles are worked out where they are needed, in fp32: cheaper than the products around, and no table to outgrow."""
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
    """What self-attention is told: queries and keys, turned."""

    base: float = 10000.0
    pairing: Pairing = "halves"
    kind: str = "rotary"
    needs: Need = "places"

    def place(
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
