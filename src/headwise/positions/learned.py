"""Positions as learned vectors: one for each place up to a limit.

    x_pos ← x_pos + P[pos],   P a [max_length, dim] weight

Gehring et al. 2017; BERT and GPT use it. Nothing is known about positions past the trained length, so a longer
sequence is refused rather than guessed.

Tested against: a plain embedding look-up, and the refusal past the limit.
"""

from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.errors import UsageError
from headwise.initialization import InitialWeights, normal_by_width


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
            raise UsageError(
                f"a sequence of {length} positions, but only {self.max_length} were learned; "
                "shorten the text, train with a larger position.max_length, or use position.kind=sinusoidal",
                f"序列有 {length} 个位置，但只学了 {self.max_length} 个；请缩短文本，或训练时加大 position.max_length，"
                "或改用 position.kind=sinusoidal",
            )
        return self.table(position)
