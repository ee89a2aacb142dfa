"""From token ids to vectors: a look-up, scaled, plus the position encoding, with dropout.

    x = dropout(√dim · E[token] + position(pos))

Vaswani et al. 2017, section 3.4. If the same matrix also turns hidden states into logits (Press &
Wolf 2017), its entries are of size 1/√dim, and the factor √dim scales the embedding to the size of
the position encoding. Position encodings that act in attention (a relation, positions/choices.py)
are not added here.

Tested against: the formula with a hand-made table.
"""

import math
from typing import ClassVar

from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.blocks.dropout import drop
from headwise.initialization import InitialWeights, normal_by_width
from headwise.settings.part_names import PartNames


class TokenEmbedding(nn.Module):
    part_names: ClassVar[PartNames] = {
        "table": ("embeddings", "词嵌入"),
        "positions": ("positional encoding", "位置编码"),
    }

    def __init__(
        self, table: nn.Embedding, positions: nn.Module | None, *, scaled: bool, dropout_rate: float
    ) -> None:
        super().__init__()
        self.table = table
        self.positions = positions
        self.scale = math.sqrt(table.embedding_dim) if scaled else 1.0
        self.dropout_rate = dropout_rate

    def initial_weights(self) -> InitialWeights:
        return [(self.table.weight, normal_by_width)]

    def forward(
        self, tokens: Int[Tensor, "batch time"], position: Int[Tensor, "batch time"], *, length: int
    ) -> Float[Tensor, "batch time dim"]:
        return self._place(self.table(tokens), position, length=length)

    def mix(
        self,
        tokens: Int[Tensor, "batch time choice"],
        weights: Float[Tensor, "batch time choice"],
        position: Int[Tensor, "batch time"],
        *,
        length: int,
    ) -> Float[Tensor, "batch time dim"]:
        """The weighted sum of several tokens' embeddings at each position."""
        mixed = (self.table(tokens) * weights[..., None]).sum(-2)
        return self._place(mixed, position, length=length)

    def _place(self, vectors: Tensor, position: Tensor, *, length: int) -> Tensor:
        x = vectors * self.scale
        if self.positions is not None:
            x = x + self.positions(position, length=length)
        return drop(x, self.dropout_rate, training=self.training)
