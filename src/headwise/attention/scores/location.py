"""The location attention score: the query alone scores the positions of the sentence.

    (W q)_j                            Luong et al. 2015

The content of the keys is not used.
"""

from typing import ClassVar, Literal

from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from headwise.attention.capabilities import RowLimit
from headwise.attention.scores.comparison import Score, make_matrix, map_vectors
from headwise.attention.scores.declaration import ScoreKind
from headwise.errors import UsageError
from headwise.initialization import InitialWeights, xavier
from headwise.settings.kind import Words, name_kinds


class LocationScore(nn.Module):
    """The query alone scores positions 0 … `max_length` − 1 of the sentence; the content of the
    keys is not used."""

    def __init__(self, query_dim: int, *, max_length: int) -> None:
        super().__init__()
        self.place_map = make_matrix(max_length, query_dim)

    def initial_weights(self) -> InitialWeights:
        return [(self.place_map, xavier())]

    @property
    def query_dim(self) -> int:
        return self.place_map.shape[1]

    @property
    def max_length(self) -> int:
        return self.place_map.shape[0]

    def count_operations(self, dim: int) -> tuple[int, int, int]:
        return 2 * self.place_map.numel(), 0, 0

    def forward(
        self,
        q: Float[Tensor, "*batch query query_dim"],
        k: Float[Tensor, "*batch key key_dim"],
        *,
        key_place: Int[Tensor, "#batch key"] | None = None,
    ) -> Float[Tensor, "*batch query key"]:
        """`key_place`: the position of each key in its sentence, if several sentences share a row
        ([batch, head, query, …] then)."""
        num_keys, limit = k.shape[-2], self.place_map.shape[0]
        if num_keys > limit:
            able = name_kinds(ScoreKind, "attention.score", lambda kind: kind.longest_row is None)
            raise UsageError(
                f"the location score knows {limit} positions and was given {num_keys} keys; raise "
                "attention.score.max_length (a packed row counts whole), or take a score that "
                f"reads the keys: {able[0]}",
                f"location 打分只认识 {limit} 个位置，却有 {num_keys} 个键；请增大 "
                "attention.score.max_length（打包行按整行计），"
                f"或改用读取键的打分：{able[1]}",
            )
        scores = map_vectors(q, self.place_map)
        if key_place is None:
            return scores[..., :num_keys]
        index = key_place[:, None, None, :].expand(*scores.shape[:-1], num_keys)
        return scores.gather(-1, index)


class LocationSettings(ScoreKind):
    kind: Literal["location"] = "location"
    max_length: int = Field(default=512, ge=1, le=65536)
    """Number of positions that can be scored; longer rows are refused."""

    title: ClassVar[Words] = ("location (W q)_j", "位置 (W q)_j")
    summary: ClassVar[Words] = (
        "The query alone says which position it wants.",
        "只由查询决定要看哪个位置。",
    )
    paper: ClassVar[str] = "Luong et al. 2015, Effective Approaches to Attention-based NMT"
    formula: ClassVar[str] = "(W q)_j"
    parameters: ClassVar[dict[str, str]] = {"W": "place_map"}

    @classmethod
    def small(cls, kind: str, *, num_keys: int, hidden: int) -> "ScoreKind":
        return cls(max_length=num_keys)

    @property
    def longest_row(self) -> RowLimit:
        return RowLimit("max_length", self.max_length)

    def build(self, *, query_dim: int, key_dim: int) -> Score:
        return LocationScore(query_dim, max_length=self.max_length)
