"""Learned position vectors: one for each position up to a limit.

    x_pos ← x_pos + P[pos],   P a [max_length, dim] weight

Gehring et al. 2017; BERT and GPT use it. There are no vectors for positions past the limit, so a
longer sequence is refused.

Tested against: a plain embedding look-up, and the refusal past the limit.
"""

from typing import ClassVar, Literal

from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from headwise.attention.capabilities import RowLimit
from headwise.errors import UsageError
from headwise.initialization import InitialWeights, normal_by_width
from headwise.positions.declaration import PositionKind
from headwise.settings.kind import Words, name_kinds


class LearnedPositions(nn.Module):
    def __init__(self, dim: int, *, max_length: int) -> None:
        super().__init__()
        self.max_length = max_length
        self.table = nn.Embedding(max_length, dim)

    def initial_weights(self) -> InitialWeights:
        return [(self.table.weight, normal_by_width)]

    def forward(
        self, position: Int[Tensor, "batch time"], *, length: int
    ) -> Float[Tensor, "batch time dim"]:
        if length > self.max_length:
            able = name_kinds(PositionKind, "position", lambda kind: kind.longest_row is None)
            raise UsageError(
                f"a sequence of {length} positions, but only {self.max_length} were learned; "
                f"shorten the text, train with a larger position.max_length, or use {able[0]}",
                f"序列有 {length} 个位置，但只学了 {self.max_length} 个；请缩短文本，或训练时加大 "
                f"position.max_length，或改用 {able[1]}",
            )
        return self.table(position)


class Learned(PositionKind):
    """A learned vector for each position up to `max_length`."""

    kind: Literal["learned"] = "learned"
    max_length: int = Field(default=512, ge=1, le=65536)
    """Longer sequences are refused."""

    title: ClassVar[Words] = ("learned vectors", "学得的向量")
    summary: ClassVar[Words] = (
        "A learned vector for each position is added to the embeddings.",
        "每个位置学一个向量，加到词嵌入上。",
    )
    paper: ClassVar[str] = "Gehring et al. 2017, Convolutional Sequence to Sequence Learning"
    formula: ClassVar[str] = "x_p ← x_p + P[p]"
    needs_model: ClassVar[bool] = True

    @property
    def longest_row(self) -> RowLimit:
        return RowLimit("max_length", self.max_length)

    def build_added(self, *, dim: int) -> nn.Module:
        return LearnedPositions(dim, max_length=self.max_length)
