"""The keys and values that a layer may look up while it is trained, in a ring for each row.

Token j of a text (counted from where its row began) has the slot j mod `room`:

    room = reach + size + segment     the window, what lies before it, and the segment being read

A new segment is written over tokens that are too far away to be seen, so that writing changes
nothing the step has read: its backward pass may read the ring again (training.recompute), and no
copy is made. A row that begins anew counts from 0, which empties its slots without touching them.

Tested against: the same pairs in one growing list; a ring that goes round several times.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from headwise.attention.nearest_attention import NOWHERE, KeyValuePairs, Stored


class RingShape(NamedTuple):
    """The sizes of a ring."""

    rows: int
    heads: int
    room: int
    head_dim: int

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values in fp32."""
        return 2 * 4 * self.rows * self.heads * self.room * self.head_dim


class PairRing(nn.Module):
    """KeyValuePairs of the rows of a batch, saved with the run (segment_memory.py)."""

    keys: Tensor
    values: Tensor
    num_read: Tensor

    def __init__(self, shape: RingShape) -> None:
        super().__init__()
        self.room = shape.room
        self.register_buffer("keys", torch.zeros(tuple(shape)))
        self.register_buffer("values", torch.zeros(tuple(shape)))
        self.register_buffer("num_read", torch.zeros(shape.rows, dtype=torch.int64))

    def look(self, rows: slice, fresh: Bool[Tensor, " row"]) -> Stored:
        """What some rows have stored; `fresh` ones have nothing."""
        count = self._count(rows, fresh)[:, None]
        slot = torch.arange(self.room, device=count.device)
        distance = 1 + (count - 1 - slot) % self.room
        distance = torch.where(distance <= count, distance, NOWHERE)
        return Stored(KeyValuePairs(self.keys[rows], self.values[rows]), distance)

    def write(self, rows: slice, fresh: Bool[Tensor, " row"], read: KeyValuePairs) -> None:
        """Store the pairs of the next tokens."""
        count, num_new = self._count(rows, fresh), read.keys.shape[2]
        assert num_new <= self.room, "a segment is not longer than its ring"
        slot = (count[:, None] + torch.arange(num_new, device=count.device)) % self.room
        index = slot[:, None, :, None].expand_as(read.keys)
        for ring, new in ((self.keys, read.keys), (self.values, read.values)):
            ring[rows].scatter_(2, index, new.to(ring.dtype))
        self.num_read[rows] = count + num_new

    def _count(self, rows: slice, fresh: Bool[Tensor, " row"]) -> Int[Tensor, " row"]:
        return torch.where(fresh, 0, self.num_read[rows])
