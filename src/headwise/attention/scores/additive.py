"""The additive attention score: a network with one hidden layer compares query and key.

    w_v · tanh(W_q q + W_k k)          Bahdanau et al. 2015

Query and key may differ in width.
"""

from typing import ClassVar, Literal

from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from headwise.attention.scores.comparison import Score, compare_in_pieces, make_matrix, map_vectors
from headwise.attention.scores.declaration import ScoreKind
from headwise.initialization import InitialWeights, xavier
from headwise.settings.kind import Words


class AdditiveScore(nn.Module):
    """A small network of one hidden layer compares; queries and keys may differ in width."""

    def __init__(self, query_dim: int, key_dim: int, *, hidden: int) -> None:
        super().__init__()
        self.query_map = make_matrix(hidden, query_dim)
        self.key_map = make_matrix(hidden, key_dim)
        self.vote = make_matrix(1, hidden)

    def initial_weights(self) -> InitialWeights:
        return [(one, xavier()) for one in (self.query_map, self.key_map, self.vote)]

    @property
    def query_dim(self) -> int:
        return self.query_map.shape[1]

    def forward(
        self, q: Float[Tensor, "*batch query query_dim"], k: Float[Tensor, "*batch key key_dim"]
    ) -> Float[Tensor, "*batch query key"]:
        return self.compare(q, self.map_keys(k))

    def map_keys(
        self, k: Float[Tensor, "*batch key key_dim"]
    ) -> Float[Tensor, "*batch key mapped"]:
        return map_vectors(k, self.key_map)

    def compare(
        self, q: Float[Tensor, "*batch query query_dim"], mapped: Float[Tensor, "*batch key mapped"]
    ) -> Float[Tensor, "*batch query key"]:
        return compare_in_pieces(map_vectors(q, self.query_map), mapped, self.vote[0])


class AdditiveSettings(ScoreKind):
    kind: Literal["additive"] = "additive"
    hidden: int = Field(default=64, ge=1, le=65536)
    """Width of the layer that compares."""

    title: ClassVar[Words] = ("additive w·tanh(W_q q + W_k k)", "加性 w·tanh(W_q q + W_k k)")
    summary: ClassVar[Words] = (
        "A small network compares query and key, which may differ in width.",
        "用小型网络比较查询与键，两者宽度可以不同。",
    )
    paper: ClassVar[str] = (
        "Bahdanau et al. 2015, Neural Machine Translation by Jointly Learning to Align and "
        "Translate"
    )
    formula: ClassVar[str] = "w_v · tanh(W_q q + W_k k)"
    parameters: ClassVar[dict[str, str]] = {"W_q": "query_map", "W_k": "key_map", "w_v": "vote"}

    @classmethod
    def small(cls, kind: str, *, num_keys: int, hidden: int) -> "ScoreKind":
        return cls(hidden=hidden)

    def build(self, *, query_dim: int, key_dim: int) -> Score:
        return AdditiveScore(query_dim, key_dim, hidden=self.hidden)
