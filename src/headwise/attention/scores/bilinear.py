"""The bilinear attention score: the product of query and key with a learned matrix between them.

    q · W k                            Luong et al. 2015, their "general"

It starts as the scaled dot product.
"""

from typing import ClassVar, Literal

from jaxtyping import Float
from torch import Tensor, nn

from headwise.attention.scores.comparison import Score, bound, make_matrix, map_vectors
from headwise.attention.scores.declaration import ScoreKind
from headwise.initialization import InitialWeights, scaled_identity
from headwise.settings.kind import Words


class BilinearScore(nn.Module):
    """A learned matrix between query and key; with the identity divided by √dim it is the scaled
    dot product."""

    def __init__(self, query_dim: int, key_dim: int) -> None:
        super().__init__()
        self.between = make_matrix(query_dim, key_dim)

    def initial_weights(self) -> InitialWeights:
        return [(self.between, scaled_identity)]

    @property
    def query_dim(self) -> int:
        return self.between.shape[0]

    def forward(
        self, q: Float[Tensor, "*batch query query_dim"], k: Float[Tensor, "*batch key key_dim"]
    ) -> Float[Tensor, "*batch query key"]:
        return self.compare(q, self.map_keys(k))

    def map_keys(
        self, k: Float[Tensor, "*batch key key_dim"]
    ) -> Float[Tensor, "*batch key mapped"]:
        return map_vectors(k, self.between)

    def compare(
        self, q: Float[Tensor, "*batch query query_dim"], mapped: Float[Tensor, "*batch key mapped"]
    ) -> Float[Tensor, "*batch query key"]:
        return bound(q) @ mapped.transpose(-2, -1)


class BilinearSettings(ScoreKind):
    """Luong et al. call it "general"."""

    kind: Literal["bilinear", "general"] = "bilinear"

    title: ClassVar[Words] = ("bilinear q·Wk", "双线性 q·Wk")
    summary: ClassVar[Words] = (
        "A learned matrix stands between query and key.",
        "查询与键之间有一个学得的矩阵。",
    )
    paper: ClassVar[str] = "Luong et al. 2015, Effective Approaches to Attention-based NMT"
    formula: ClassVar[str] = "q · W k"
    parameters: ClassVar[dict[str, str]] = {"W": "between"}
    drawn: ClassVar[bool] = False

    def build(self, *, query_dim: int, key_dim: int) -> Score:
        return BilinearScore(query_dim, key_dim)


LUONG_GENERAL = BilinearSettings(kind="general")
"""The same score under the name that Luong et al. use."""
