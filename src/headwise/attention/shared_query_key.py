"""Multi-head self-attention with one projection for queries and keys.

    q = k = x W_q,    v = x W_v

Kitaev et al. 2020 (Reformer), section 2: a hash that sends similar vectors to the same bucket finds
the keys of a query only if both are made by the same projection.

Tested against: attention/kernels/reformer.py in a layer, through its tests.
"""

from jaxtyping import Float
from torch import Tensor, nn

from headwise.attention.multi_head import Kernel, MultiHeadAttention, Relation
from headwise.initialization import PROJECTION_GAIN, InitialWeights, initial_linear, xavier


class SharedQueryKeyAttention(MultiHeadAttention):
    """Multi-head self-attention whose keys are its queries."""

    def __init__(
        self,
        dim: int,
        num_heads: int,
        kernel: Kernel,
        *,
        kind: str,
        relation: Relation | None = None,
    ) -> None:
        super().__init__(dim, num_heads, kernel, relation=relation)
        del self.key_value
        self.kind = kind
        self.value = nn.Linear(dim, dim)

    def initial_weights(self) -> InitialWeights:
        yield from initial_linear(self.query, xavier(gain=PROJECTION_GAIN))
        yield from initial_linear(self.value, xavier(gain=PROJECTION_GAIN))
        yield from initial_linear(self.output, xavier())

    @property
    def own_sequence_only(self) -> tuple[str, str]:
        return (
            f"with attention.kind={self.kind} its keys are its own queries",
            f"attention.kind={self.kind} 的键就是自己的查询",
        )

    def project(self, x: Float[Tensor, "batch time dim"]) -> tuple[Tensor, Tensor, Tensor]:
        q = self._split(self.query(x))
        return q, q, self._split(self.value(x))
