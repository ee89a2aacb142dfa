"""The residual connection around a sub-layer, with the norm before or after it.

    before:  y = x + dropout(sublayer(norm(x)))         pre-norm: stable without long warm-up
    after:   y = norm(x + dropout(sublayer(x)))         post-norm: the original paper

The straight path x → x is what gradients travel along; with the norm before, it is never interrupted (Xiong et al.
2020). The residual is always written out here, never hidden inside a sub-layer.

Tested against: both formulas with a known sub-layer.
"""

from collections.abc import Callable
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from headwise.blocks.dropout import drop

Place = Literal["before", "after"]


class Residual(nn.Module):
    def __init__(self, norm: nn.Module, *, place: Place, dropout_rate: float) -> None:
        super().__init__()
        self.norm = norm
        self.place = place
        self.dropout_rate = dropout_rate

    def forward(
        self, x: Float[Tensor, "batch time dim"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "batch time dim"]:
        if self.place == "before":
            return x + drop(sublayer(self.norm(x)), self.dropout_rate, training=self.training)
        return self.norm(x + drop(sublayer(x), self.dropout_rate, training=self.training))
