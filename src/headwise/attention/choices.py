"""The kernels a recipe may name under `attention: {kind: …}`, and the one place that builds them."""

from typing import Annotated, Literal

from pydantic import Field

from headwise.attention.full import FullAttention
from headwise.attention.fused import FusedAttention
from headwise.attention.multi_head import MultiHeadAttention, Relation
from headwise.settings import Settings


class Full(Settings):
    """Written out, quadratic, the reference: for reading and for comparing with."""

    kind: Literal["full"] = "full"


class Fused(Settings):
    """The same numbers from torch's fused kernel; the one to train with."""

    kind: Literal["fused"] = "fused"


AttentionSettings = Annotated[Full | Fused, Field(discriminator="kind")]


Role = Literal["encoder", "decoder", "cross"]
"""Where attention stands: among source tokens, among target tokens (never ahead), from target to source."""


def build_attention(
    settings: AttentionSettings,
    *,
    dim: int,
    num_heads: int,
    dropout_rate: float,
    role: Role,
    relation: Relation | None = None,
) -> MultiHeadAttention:
    """One layer's attention; what cannot stand in this role is refused here, with what can."""
    match settings:
        case Full():
            return MultiHeadAttention(dim, num_heads, FullAttention(dropout_rate), relation=relation)
        case Fused():
            return MultiHeadAttention(dim, num_heads, FusedAttention(dropout_rate), relation=relation)
