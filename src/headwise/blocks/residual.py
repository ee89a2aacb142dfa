"""The residual connection around a sub-layer, with the norm before or after it.

    before:  y = x + dropout(sublayer(norm(x)))         pre-norm: stable without long warm-up
    after:   y = norm(x + dropout(sublayer(x)))         post-norm: the original paper

Gradients flow along the direct path x → x; with the norm before, no norm interrupts it (Xiong et
al. 2020). The residual is always written out here, never hidden inside a sub-layer.

Tested against: both formulas with a known sub-layer.
"""

from collections.abc import Callable
from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor, nn

from headwise.blocks.dropout import drop
from headwise.blocks.normalization import apply_norm

Place = Literal["before", "after"]


class Residual(nn.Module):
    def __init__(self, norm: nn.Module, *, place: Place, dropout_rate: float) -> None:
        super().__init__()
        self.norm = norm
        self.place = place
        self.dropout_rate = dropout_rate

    def read_by_sublayer(
        self, x: Float[Tensor, "batch time dim"]
    ) -> Float[Tensor, "batch time dim"]:
        """What the sub-layer reads of x; for norms without statistics over tokens."""
        return self.norm(x) if self.place == "before" else x

    def forward(
        self,
        x: Float[Tensor, "batch time dim"],
        sublayer: Callable[[Tensor], Tensor],
        *,
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time dim"]:
        """`real` marks tokens that are not padding, for norms with statistics over tokens; None:
        all are tokens."""
        if self.place == "before":
            normed = apply_norm(self.norm, x, real)
            return x + drop(sublayer(normed), self.dropout_rate, training=self.training)
        return apply_norm(
            self.norm, x + drop(sublayer(x), self.dropout_rate, training=self.training), real
        )
