"""The key-value cache of a decoder: keys and values of earlier positions, stored for later steps.

Without a cache, step t computes t keys in every layer; with it, one. The store is time-major,
`[time, row, head, head_dim]`, so the written prefix is one contiguous block. A step writes one
slice in place. Reordering hypotheses copies the prefix once, into the second of two buffers.

Tested against: the whole sequence computed at once (tests/laws).
"""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.errors import UsageError


@runtime_checkable
class Cache(Protocol):
    """What one attention layer stores of the positions before."""

    length: int
    """Number of positions stored."""

    def reorder(self, index: Int[Tensor, " new_row"]) -> None:
        """Row i becomes the old row index[i]; fewer rows than before drops the others."""
        ...


FIRST_ROOM = 32
"""Positions of a new rolling cache."""


class KeyValueCache:
    """Keys and values of one attention layer for `num_rows` hypotheses, with space for `max_length`
    positions."""

    def __init__(
        self,
        keys: Float[Tensor, "time row head head_dim"],
        values: Float[Tensor, "time row head head_dim"],
    ) -> None:
        self.keys, self.values = keys, values
        self.length = 0
        self._spare: tuple[Tensor, Tensor] | None = None

    @classmethod
    def empty(
        cls, *, max_length: int, num_rows: int, num_heads: int, head_dim: int, like: Tensor
    ) -> "KeyValueCache":
        shape = (max_length, num_rows, num_heads, head_dim)
        return cls(like.new_empty(shape), like.new_empty(shape))

    def append(
        self, k: Float[Tensor, "row head step head_dim"], v: Float[Tensor, "row head step head_dim"]
    ) -> tuple[Float[Tensor, "row head time head_dim"], Float[Tensor, "row head time head_dim"]]:
        """Add new positions; returns all keys and values so far."""
        end = self.length + k.shape[2]
        if end > self.keys.shape[0]:
            # A single position written past the end would fit an empty slice and be lost without an
            # error.
            raise UsageError(
                f"the cache has room for {self.keys.shape[0]} positions and {end} are needed; "
                "start with a larger max_length",
                f"缓存可容纳 {self.keys.shape[0]} 个位置，需要 {end} 个；请以更大的 max_length "
                "开始",
            )
        self.keys[self.length : end] = k.permute(2, 0, 1, 3)
        self.values[self.length : end] = v.permute(2, 0, 1, 3)
        self.length = end
        return self.keys[:end].permute(1, 2, 0, 3), self.values[:end].permute(1, 2, 0, 3)

    def reorder(self, index: Int[Tensor, " new_row"]) -> None:
        """Row i becomes the old row index[i]; fewer rows than before drops the others."""
        if self._spare is None or self._spare[0].shape[1] != index.shape[0]:
            shape = (self.keys.shape[0], index.shape[0], *self.keys.shape[2:])
            self._spare = (self.keys.new_empty(shape), self.values.new_empty(shape))
        spare_keys, spare_values = self._spare
        torch.index_select(self.keys[: self.length], 1, index, out=spare_keys[: self.length])
        torch.index_select(self.values[: self.length], 1, index, out=spare_values[: self.length])
        self._spare = (self.keys, self.values)
        self.keys, self.values = spare_keys, spare_values


class RollingCache(KeyValueCache):
    """A cache that drops its oldest positions when its buffer is full, so that it never
    overflows."""

    _first = 0

    @classmethod
    def beginning(
        cls, num_rows: int, *, like: Float[Tensor, "any head head_dim"]
    ) -> "RollingCache":
        """An empty cache for keys of this shape and type."""
        shape = (FIRST_ROOM, num_rows, *like.shape[1:])
        return cls(like.new_empty(shape), like.new_empty(shape))

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add a position; returns all keys and values that are still stored."""
        if self._first + self.length == self.keys.shape[0]:
            self._copy(slice(None), room=max(FIRST_ROOM, 2 * self.length))
        self.length += 1
        end = self._first + self.length
        self.keys[end - 1], self.values[end - 1] = k[:, :, 0], v[:, :, 0]
        return self.keys[self._first : end].permute(1, 2, 0, 3), self.values[
            self._first : end
        ].permute(1, 2, 0, 3)

    def keep_last(self, length: int) -> None:
        """Drop all positions but the last ones."""
        self._first += self.length - length
        self.length = length

    def reorder(self, index: Int[Tensor, " new_row"]) -> None:
        self._copy(index, room=self.keys.shape[0])

    def _copy(self, rows: "Tensor | slice", *, room: int) -> None:
        for name in ("keys", "values"):
            old = getattr(self, name)[self._first : self._first + self.length, rows]
            new = old.new_empty((room, *old.shape[1:]))
            new[: self.length] = old
            setattr(self, name, new)
        self._first = 0
