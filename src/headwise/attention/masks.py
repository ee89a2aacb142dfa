"""Masks as values: which keys a query may attend to, in a form that kernels can recognise.

A mask is a conjunction of parts: causal (no later key), window (no far key), padding (real keys
only), segments (only the query's own sentence) and explicit (any boolean table). `True` always
means *may attend*. Because a mask keeps its parts, a kernel can take a fast path for the structure
it knows: a causal kernel never builds the triangle. A kernel that computes few pairs asks for those
with `at`; other kernels ask for the whole table with `dense`. A float bias is a separate argument
(biases.py).

Tested against: tables written out by hand, and the laws (a masked key never has an effect).
"""

from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Integer, Shaped
from torch import Tensor

Worked = TypeVar("Worked")


def number_zero(number: Tensor) -> Tensor:
    """The index into an axis; on an axis of size one, which applies to all, it is 0. A single
    number stays one, because fused kernels ask for one pair."""
    return 0 * number if number.dim() == 0 else number.new_zeros((1,) * number.dim())


def lookup(
    table: Shaped[Tensor, "#batch #head #query #key"],
    batch: Tensor,
    head: Tensor,
    query: Tensor,
    key: Tensor,
) -> Tensor:
    """Single entries of a dense table; axes of size one apply to all and do not enlarge the
    result."""
    index = zip((batch, head, query, key), table.shape, strict=True)
    return table[tuple(one if size > 1 else number_zero(one) for one, size in index)]


def of_token(table: Shaped[Tensor, "#batch time"], batch: Tensor, token: Tensor) -> Tensor:
    """Single entries of a value per token; a batch of one applies to all."""
    return table[batch if table.shape[0] > 1 else number_zero(batch), token]


@runtime_checkable
class MaskCondition(Protocol):
    """One condition of a mask, for single pairs (`at`) or for all of them (`dense`)."""

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of batch elements and heads that it distinguishes; 1 applies to all."""
        ...

    def at(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        """Whether the query may attend to the key. The four index tensors broadcast, and so does
        the result."""
        ...

    def dense(
        self, num_queries: int, num_keys: int, device: torch.device
    ) -> Bool[Tensor, "#batch #head query key"]: ...


@runtime_checkable
class LengthPart(Protocol):
    """A part whose rule uses the length of the row."""

    def at_any_length(self, device: torch.device) -> MaskCondition:
        """The same part with the length as a tensor, so that one compiled kernel serves all lengths
        (flex.py)."""
        ...


@runtime_checkable
class BlockPart(Protocol):
    """A part that gives the same answer for all pairs of two blocks."""

    @property
    def num_alike(self) -> int:
        """Number of tokens of a block; the first block begins with token 0."""
        ...

    def at(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Causal:
    """Query i may attend to keys 0 … i + offset; the offset is the number of keys that precede
    query 0."""

    offset: int = 0

    @property
    def sizes(self) -> tuple[int, int]:
        return 1, 1

    def at(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return key <= query + self.offset

    def dense(
        self, num_queries: int, num_keys: int, device: torch.device
    ) -> Bool[Tensor, "1 1 query key"]:
        query = torch.arange(num_queries, device=device)[:, None] + self.offset
        key = torch.arange(num_keys, device=device)[None, :]
        return (key <= query)[None, None]


@dataclass(frozen=True)
class Band:
    """Query i may attend to `left` keys before it and `right` keys after it (offset as for
    `Causal`)."""

    left: int
    right: int
    offset: int = 0

    @property
    def sizes(self) -> tuple[int, int]:
        return 1, 1

    def at(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        distance = key - query - self.offset
        return (distance >= -self.left) & (distance <= self.right)

    def dense(
        self, num_queries: int, num_keys: int, device: torch.device
    ) -> Bool[Tensor, "1 1 query key"]:
        query = torch.arange(num_queries, device=device)[:, None] + self.offset
        distance = torch.arange(num_keys, device=device)[None, :] - query
        return ((distance >= -self.left) & (distance <= self.right))[None, None]


@dataclass(frozen=True, eq=False)
class Padding:
    """Keys that are real tokens; the others are padding."""

    real: Bool[Tensor, "batch key"]

    @property
    def sizes(self) -> tuple[int, int]:
        return self.real.shape[0], 1

    def at(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return of_token(self.real, batch, key)

    def dense(
        self, num_queries: int, num_keys: int, device: torch.device
    ) -> Bool[Tensor, "batch 1 1 key"]:
        return self.real[:, None, None, :]


@dataclass(frozen=True, eq=False)
class Segments:
    """Several sentences share a row; a query attends only to keys with its own segment number (0 is
    padding). Any numbers other than 0 may be used."""

    query: Integer[Tensor, "#batch query"]
    key: Integer[Tensor, "#batch key"]

    @property
    def sizes(self) -> tuple[int, int]:
        return max(self.query.shape[0], self.key.shape[0]), 1

    def at(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        own = of_token(self.key, batch, key)
        return (of_token(self.query, batch, query) == own) & (own != 0)

    def dense(
        self, num_queries: int, num_keys: int, device: torch.device
    ) -> Bool[Tensor, "batch 1 query key"]:
        own = self.query[:, None, :, None] == self.key[:, None, None, :]
        return own & (self.key != 0)[:, None, None, :]


@dataclass(frozen=True, eq=False)
class Explicit:
    """Any boolean table."""

    allowed: Bool[Tensor, "#batch #head #query key"]

    @property
    def sizes(self) -> tuple[int, int]:
        return self.allowed.shape[0], self.allowed.shape[1]

    def at(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return lookup(self.allowed, batch, head, query, key)

    def dense(
        self, num_queries: int, num_keys: int, device: torch.device
    ) -> Bool[Tensor, "#batch #head #query key"]:
        return self.allowed


@dataclass(frozen=True, eq=False)
class Mask:
    """A conjunction of parts; without parts every key is visible. Join masks with `&`."""

    parts: tuple[MaskCondition, ...] = ()
    blind_count: bool = True
    """Whether a query without visible keys must give zeros; False if its result is never read and
    any finite number will do."""

    def __and__(self, other: "Mask") -> "Mask":
        return Mask(self.parts + other.parts, blind_count=self.blind_count or other.blind_count)

    def ignoring_blind(self) -> "Mask":
        """The same mask for a caller who never reads the results of queries without visible keys
        (padding): saves writing their zeros."""
        return Mask(self.parts, blind_count=False)

    @property
    def causal_offset(self) -> int | None:
        """The number of keys that precede query 0 if the mask is causal, else None."""
        offsets = [part.offset for part in self.parts if isinstance(part, Causal)]
        # Not default=None, which torch.compile cannot follow.
        return min(offsets) if offsets else None

    def worked_out(self, kind: type[Worked]) -> Worked | None:
        """What a kernel has prepared; None if it has not, or if the mask was joined with another
        one since."""
        part = self.parts[0] if len(self.parts) == 1 else None
        return part if isinstance(part, kind) else None

    def as_given(self) -> "Mask":
        """The mask before it was prepared: its parts can be recognised again."""
        nested = (
            part.mask.parts if isinstance(part, PreparedMask) else (part,) for part in self.parts
        )
        return Mask(tuple(one for parts in nested for one in parts), blind_count=self.blind_count)

    def is_empty(self, num_queries: int, num_keys: int) -> bool:
        """Whether batch, queries or keys are empty: a kernel then has nothing to prepare."""
        return 0 in (num_queries, num_keys, *(size for part in self.parts for size in part.sizes))

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of batch elements and heads that the mask distinguishes; 1 applies to all."""
        return max([1, *[part.sizes[0] for part in self.parts]]), max(
            [1, *[part.sizes[1] for part in self.parts]]
        )

    def at(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor | None:
        """The mask at single pairs, given by index tensors that broadcast; None when nothing is
        hidden."""
        table = None
        for part in self.parts:
            allowed = part.at(batch, head, query, key)
            table = allowed if table is None else table & allowed
        return table

    def dense(
        self, num_queries: int, num_keys: int, device: torch.device
    ) -> Bool[Tensor, "#batch #head #query key"] | None:
        """The whole table, or None when nothing is hidden."""
        table = None
        for part in self.parts:
            allowed = part.dense(num_queries, num_keys, device)
            table = allowed if table is None else table & allowed
        return table

    def resolve(self, num_queries: int, num_keys: int, device: torch.device) -> "Mask":
        """The same mask with its dense table computed once, for a stack of layers that all use
        it."""
        if len(self.parts) == 0 or self.parts == (Causal(),):
            return self
        table = self.dense(num_queries, num_keys, device)
        assert table is not None
        return Mask((Explicit(table),), blind_count=self.blind_count)


@dataclass(frozen=True, eq=False)
class PreparedMask:
    """A mask together with what a kernel has prepared from it, once for a stack of layers; other
    kernels use it as the plain mask."""

    mask: Mask

    @property
    def sizes(self) -> tuple[int, int]:
        return self.mask.sizes

    def at(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        seen = self.mask.at(batch, head, query, key)
        return torch.ones_like(key, dtype=torch.bool) if seen is None else seen

    def dense(
        self, num_queries: int, num_keys: int, device: torch.device
    ) -> Bool[Tensor, "#batch #head #query key"]:
        table = self.mask.dense(num_queries, num_keys, device)
        return (
            torch.ones(1, 1, 1, num_keys, dtype=torch.bool, device=device)
            if table is None
            else table
        )


def everything() -> Mask:
    return Mask()


def causal(offset: int = 0) -> Mask:
    return Mask((Causal(offset),))


def window(left: int, right: int, *, offset: int = 0) -> Mask:
    return Mask((Band(left, right, offset),))


def padding(real: Bool[Tensor, "batch key"]) -> Mask:
    return Mask((Padding(real),))


def segments(query: Integer[Tensor, "#batch query"], key: Integer[Tensor, "#batch key"]) -> Mask:
    return Mask((Segments(query, key),))


def explicit(allowed: Bool[Tensor, "#batch #head #query key"]) -> Mask:
    return Mask((Explicit(allowed),))
