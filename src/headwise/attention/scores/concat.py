"""The concat attention score: the network of the additive score over query and key side by side.

v · tanh(W [q; k])                 Luong et al. 2015
"""

from typing import ClassVar, Literal

from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from headwise.attention.scores.comparison import Score, compare_in_pieces, make_matrix, map_vectors
from headwise.attention.scores.declaration import ScoreKind
from headwise.initialization import InitialWeights, xavier
from headwise.settings.kind import Words


class ConcatScore(nn.Module):
    """The same network over query and key side by side; nothing is concatenated, because W [q; k] =
    W_q q + W_k k."""

    def __init__(self, query_dim: int, key_dim: int, *, hidden: int) -> None:
        super().__init__()
        self.query_dim = query_dim
        self.joint_map = make_matrix(hidden, query_dim + key_dim)
        self.vote = make_matrix(1, hidden)

    def initial_weights(self) -> InitialWeights:
        return [(self.joint_map, xavier()), (self.vote, xavier())]

    def forward(
        self, q: Float[Tensor, "*batch query query_dim"], k: Float[Tensor, "*batch key key_dim"]
    ) -> Float[Tensor, "*batch query key"]:
        return self.compare(q, self.map_keys(k))

    def map_keys(
        self, k: Float[Tensor, "*batch key key_dim"]
    ) -> Float[Tensor, "*batch key mapped"]:
        return map_vectors(k, self.joint_map[:, self.query_dim :])

    def compare(
        self, q: Float[Tensor, "*batch query query_dim"], mapped: Float[Tensor, "*batch key mapped"]
    ) -> Float[Tensor, "*batch query key"]:
        return compare_in_pieces(
            map_vectors(q, self.joint_map[:, : self.query_dim]), mapped, self.vote[0]
        )


class ConcatSettings(ScoreKind):
    kind: Literal["concat"] = "concat"
    hidden: int = Field(default=64, ge=1, le=65536)
    """Width of the layer that compares."""

    title: ClassVar[Words] = ("concat v·tanh(W[q;k])", "拼接 v·tanh(W[q;k])")
    summary: ClassVar[Words] = (
        "A small network compares query and key side by side.",
        "用小型网络比较拼接在一起的查询与键。",
    )
    paper: ClassVar[str] = "Luong et al. 2015, Effective Approaches to Attention-based NMT"
    formula: ClassVar[str] = "v · tanh(W [q; k])"
    parameters: ClassVar[dict[str, str]] = {"W": "joint_map", "v": "vote"}

    @classmethod
    def small(cls, kind: str, *, num_keys: int, hidden: int) -> "ScoreKind":
        return cls(hidden=hidden)

    def build(self, *, query_dim: int, key_dim: int) -> Score:
        return ConcatScore(query_dim, key_dim, hidden=self.hidden)
