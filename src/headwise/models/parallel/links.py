"""Computes the link probabilities of a Directed Acyclic Transformer: how likely each position of
the decoder is followed by each later one in a translation.

A decoder of λ · n positions is read as a directed acyclic graph: a translation is a path through
some of its vertices. From each vertex a link leads to every later vertex of the same sentence:

    f_i        = [hidden_i ; PE(i)]
    P(k | i)   = Σ_h  g_h(i) · softmax over k > i of (Wq_h f_i · Wk_h f_k / √head_dim)
    g(i)       = softmax over heads of Wg f_i

The heads are mixed as probabilities, not as logits, so that a vertex can have several likely
successors. In log space the mixture is a log-sum-exp of head + gate. The published model
concatenates a learned embedding of the position; here it is sinusoidal, so the length of a
graph is not limited, and the product of a query and a key can still depend on their distance.

Huang et al. 2022, Directed Acyclic Transformer for Non-Autoregressive Machine Translation (arXiv
2205.07459), section 3.2. Tested against: the formula written as loops over vertices and heads; rows
sum to one; padding changes nothing.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from headwise.attention.precision import widen
from headwise.errors import UsageError
from headwise.initialization import InitialWeights, initial_linear, xavier
from headwise.positions.sinusoidal import SinusoidalPositions

_FORBIDDEN = -1e30
"""The logit of an impossible link: it gets no probability, and no infinity reaches a gradient."""


class Links(nn.Module):
    """Log-probabilities of the successor of each vertex."""

    def __init__(self, dim: int, *, num_heads: int) -> None:
        super().__init__()
        if dim % num_heads:
            raise UsageError(
                f"links of {num_heads} heads over {dim} dimensions, but every head needs the same "
                "number of dimensions; choose a number of heads that divides the width",
                f"链接有 {num_heads} 个头、{dim} 维，但每个头的维数必须相同；"
                "请选择能整除宽度的头数",
            )
        self.num_heads = num_heads
        self.position = SinusoidalPositions(dim)
        self.query = nn.Linear(2 * dim, dim)
        self.key = nn.Linear(2 * dim, dim)
        self.gate = nn.Linear(2 * dim, num_heads)

    def initial_weights(self) -> InitialWeights:
        for layer in (self.query, self.key, self.gate):
            yield from initial_linear(layer, xavier())

    def forward(
        self, hidden: Float[Tensor, "pair vertex dim"], vertex_count: Int[Tensor, " pair"]
    ) -> Float[Tensor, "pair vertex successor"]:
        """In fp32 or wider; -inf where there is no link. The last vertex has no successor."""
        num_pairs, num_vertices, dim = hidden.shape
        index = torch.arange(num_vertices, device=hidden.device)
        position = self.position(index[None], length=num_vertices).to(hidden.dtype)
        features = torch.cat([hidden, position.expand(num_pairs, -1, -1)], dim=-1)
        by_head = (num_pairs, num_vertices, self.num_heads, dim // self.num_heads)
        q = widen(self.query(features)).view(by_head).transpose(1, 2)
        k = widen(self.key(features)).view(by_head).transpose(1, 2)
        gates = widen(self.gate(features)).log_softmax(-1)
        allowed = possible_links(vertex_count, num_vertices)
        with torch.autocast(hidden.device.type, enabled=False):
            logits = (q * by_head[-1] ** -0.5) @ k.transpose(2, 3)
        logits = logits.masked_fill(~allowed[:, None], _FORBIDDEN)
        heads = logits.log_softmax(-1) + gates.transpose(1, 2)[..., None]
        return heads.logsumexp(1).masked_fill(~allowed, -torch.inf)


def possible_links(
    vertex_count: Int[Tensor, " pair"], num_vertices: int
) -> Bool[Tensor, "pair vertex successor"]:
    """Whether a link may lead from one vertex to another: to later ones of the same sentence."""
    index = torch.arange(num_vertices, device=vertex_count.device)
    later = index[None, :] > index[:, None]
    return later & (index < vertex_count[:, None])[:, None, :]
