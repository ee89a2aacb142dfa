"""Functions that several attention scores share: they bound large numbers, make matrices of
weights, and compare a query with a key by a small network, the additive comparison. `vote` is a
learned vector.

    vote · tanh(a_i + b_j)       for all pairs of a query i and a key j

The comparison takes O(query · key · hidden) operations *and* memory. Above `CHUNK` numbers the
queries are processed in chunks that are computed again in the backward pass, so memory stays
O(query · key) plus one chunk.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from headwise.attention.precision import widen

Score = Callable[[Tensor, Tensor], Tensor]
"""(q [… query dim], k [… key dim]) → [… query key]."""

LARGEST = 1e15
"""Products of larger numbers would overflow in float32."""
CHUNK = 2**26
"""Numbers of the additive comparison in memory at once: 256 MiB in float32."""


def make_matrix(num_rows: int, num_columns: int) -> nn.Parameter:
    """Weights of a score. Not nn.Linear, because inference replaces linear layers by other forms,
    whose numbers differ from these formulas."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(num_rows, num_columns)))


def bound(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """In float32 or better, and bounded so that products stay finite."""
    return widen(x).clamp(-LARGEST, LARGEST)


def map_vectors(
    x: Float[Tensor, "*batch time dim"], weight: Float[Tensor, "out dim"]
) -> Float[Tensor, "*batch time out"]:
    wide = bound(x)
    return F.linear(wide, weight.to(wide.dtype))


def _compare(a: Tensor, b: Tensor, vote: Tensor) -> Tensor:
    return (a.unsqueeze(-2) + b.unsqueeze(-3)).tanh() @ vote.to(a.dtype)


def compare_in_pieces(
    a: Float[Tensor, "*batch query hidden"],
    b: Float[Tensor, "*batch key hidden"],
    vote: Float[Tensor, " hidden"],
) -> Float[Tensor, "*batch query key"]:
    """vote · tanh(a_i + b_j) for all pairs."""
    num_rows = max(1, CHUNK // max(1, b.numel()))
    if num_rows >= a.shape[-2]:
        return _compare(a, b, vote)
    pieces = a.split(num_rows, dim=-2)
    if not torch.is_grad_enabled():
        return torch.cat([_compare(piece, b, vote) for piece in pieces], dim=-2)
    # Nothing inside is random, so no state of a generator has to be restored.
    compared = [
        checkpoint(_compare, piece, b, vote, use_reentrant=False, preserve_rng_state=False)
        for piece in pieces
    ]
    return torch.cat(compared, dim=-2)


@runtime_checkable
class KeyMapping(Protocol):
    """A score with a part that depends on the keys only: score(q, k) = compare(q, map_keys(k))."""

    def map_keys(
        self, k: Float[Tensor, "*batch key key_dim"]
    ) -> Float[Tensor, "*batch key mapped"]: ...

    def compare(
        self, q: Float[Tensor, "*batch query query_dim"], mapped: Float[Tensor, "*batch key mapped"]
    ) -> Float[Tensor, "*batch query key"]: ...


@runtime_checkable
class PositionScore(Protocol):
    """A score that uses the position of a key in its sentence, up to a limit."""

    @property
    def max_length(self) -> int: ...

    def __call__(
        self,
        q: Float[Tensor, "*batch query query_dim"],
        k: Float[Tensor, "*batch key key_dim"],
        *,
        key_place: Int[Tensor, "#batch key"] | None = None,
    ) -> Float[Tensor, "*batch query key"]: ...


@runtime_checkable
class LearnedScore(Protocol):
    """A score with a matrix for queries of one width."""

    @property
    def query_dim(self) -> int: ...
