"""The kernels a recipe may name under `attention: {kind: …}`, and the one place that builds them."""

from typing import Annotated, Literal

from pydantic import Field

from headwise.attention.full import FullAttention
from headwise.attention.fused import FusedAttention
from headwise.attention.multi_head import Kernel
from headwise.settings import Settings


class Full(Settings):
    """Written out, quadratic, the reference: for reading and for comparing with."""

    kind: Literal["full"] = "full"


class Fused(Settings):
    """The same numbers from torch's fused kernel; the one to train with."""

    kind: Literal["fused"] = "fused"


AttentionSettings = Annotated[Full | Fused, Field(discriminator="kind")]


def build_kernel(settings: AttentionSettings, *, dropout_rate: float) -> Kernel:
    match settings:
        case Full():
            return FullAttention(dropout_rate)
        case Fused():
            return FusedAttention(dropout_rate)
