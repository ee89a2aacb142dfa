"""Self-attention for inference: queries, keys and values from one product instead of two.

    [q | k | v] = x [W_q | W_k | W_v] + [b_q | b_k | b_v]

In self-attention all three are projections of the same x, so their weights can be concatenated: one
larger product instead of two small ones, and x is read (in int8: rounded) once. The results are the
same numbers.

Built from a trained MultiHeadAttention, which is not changed. Tested against: that module.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.attention.multi_head import MultiHeadAttention
from headwise.blocks.inference.operator_probe import MakeLinear


class JointAttention(MultiHeadAttention):
    """A MultiHeadAttention that is only called with `memory = x`."""

    output: nn.Module  # type: ignore[assignment]

    def __init__(self, trained: MultiHeadAttention, make_linear: MakeLinear) -> None:
        nn.Module.__init__(self)
        self.num_heads, self.head_dim = trained.num_heads, trained.head_dim
        self.kernel, self.relation = trained.kernel, trained.relation
        query, key_value = trained.query, trained.key_value
        bias = None if query.bias is None else torch.cat([query.bias, key_value.bias])
        self.query_key_value = make_linear(torch.cat([query.weight, key_value.weight]), bias)
        self.output = make_linear(trained.output.weight, trained.output.bias)

    def project(self, x: Float[Tensor, "batch time dim"]) -> tuple[Tensor, Tensor, Tensor]:
        """Each [batch, head, time, head_dim]; all are views of one product."""
        joint = self.query_key_value(x).view(*x.shape[:2], 3, self.num_heads, -1)
        q, k, v = joint.permute(2, 0, 3, 1, 4).unbind()
        return q, k, v
