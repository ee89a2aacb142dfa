"""A key-value cache in which every row has its own length, for a decoder that verifies drafts
(guesses of the next tokens): a step adds several positions, and rejected ones are cut off.

A verifier of drafts feeds a block of tokens to every row and keeps only those that were accepted.
Each row has its own column of positions, and the block of row r is written behind the positions it
has kept. To cut rejected positions, only the row's length is lowered: the next block overwrites
them, and until then no query sees them.

    column           0  1  2  3  4  5  6
    row 0, length 2  a  b  c  d  e            c d e: the block; its queries see columns ≤ their own
    row 1, length 4  p  q  r  s  t  u  v

A block's query at column p attends to columns 0 … p, so the mask is `key ≤ position` for each row.

Tested against: the same tokens fed one by one (tests/models/test_verifying_decoder.py).
"""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from headwise.attention.masks import Mask


@dataclass(frozen=True)
class BlockPlace:
    """Where the tokens of a block stand; computed once for all layers."""

    position: Int[Tensor, "row step"]
    """The column of each token, which is also its position in the sentence."""
    index: Int[Tensor, " token"]
    """The same in a store whose rows and columns are joined to one axis."""
    num_keys: int
    """Columns that are read: those of the longest row, its block included."""
    mask: Mask
    """Key ≤ position, prepared for the kernel of the layers."""


class RaggedCache:
    """The keys and values of one attention layer."""

    def __init__(
        self,
        keys: Float[Tensor, "row time head head_dim"],
        values: Float[Tensor, "row time head head_dim"],
    ) -> None:
        self.keys, self.values = keys, values

    @classmethod
    def empty(
        cls, *, num_rows: int, room: int, num_heads: int, head_dim: int, like: Tensor
    ) -> "RaggedCache":
        """Zeros, because a weight of zero does not remove a NaN from columns never written."""
        shape = (num_rows, room, num_heads, head_dim)
        return cls(like.new_zeros(shape), like.new_zeros(shape))

    def write(
        self,
        k: Float[Tensor, "row head step head_dim"],
        v: Float[Tensor, "row head step head_dim"],
        place: BlockPlace,
    ) -> tuple[Float[Tensor, "row head time head_dim"], Float[Tensor, "row head time head_dim"]]:
        """Store a block; returns all columns that its queries may see."""
        for store, new in ((self.keys, k), (self.values, v)):
            store.flatten(0, 1).index_copy_(0, place.index, new.transpose(1, 2).flatten(0, 1))
        keys, values = (
            store[:, : place.num_keys].transpose(1, 2) for store in (self.keys, self.values)
        )
        return keys, values

    def keep(self, rows: Int[Tensor, " kept"]) -> None:
        """Drop all rows but these."""
        self.keys, self.values = self.keys[rows], self.values[rows]
