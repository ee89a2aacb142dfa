"""Local attention: a target token attends only to source tokens near one position.

    local_m   centre = t                               the position of the target token; at most
                                                       the last position of the source
    local_p   centre = S · sigmoid(v · tanh(W q))      predicted; S: number of visible keys of the
                                                       query
    Only keys j with |j − centre| ≤ D count. For local_p their weights are multiplied by
    exp(−(j − centre)² / 2σ²), σ = D/2.

Luong, Pham & Manning 2015, section 3.2. The weights are *not* renormalised after the Gaussian, so
the weights of a row sum to less than one. The centre is not rounded, because the gradient of W and
v flows through the Gaussian; the edge of the window passes none. Positions count from 0 in each
segment of a packed row. While decoding, the caller gives the positions of the queries
(`ScoredAttention.stand_at`). The heads share v and W; each has its own q.

Tested against: loops over single pairs; D ≥ S with a huge σ equals attention over all keys exactly.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from headwise.attention.masks import Explicit, Mask, Segments
from headwise.attention.packed_segments import count_in_runs, find_first, real_tokens
from headwise.attention.scores.comparison import bound, make_matrix
from headwise.initialization import InitialWeights, xavier
from headwise.settings.kind import Kind, Words


@dataclass(frozen=True, eq=False)
class Places:
    """Positions of queries and keys in their sentences, from 0; a single row applies to all."""

    query: Int[Tensor, "#batch query"]
    key: Int[Tensor, "#batch key"]


@dataclass(frozen=True, eq=False)
class PlacedTable(Explicit):
    """A dense mask prepared once for a stack of layers, together with the positions that its
    segments gave."""

    places: Places


def find_places(mask: Mask, num_queries: int, num_keys: int, device: torch.device) -> Places:
    """Positions restart with each segment; with padding, those of the keys begin at the first real
    token; otherwise a row is one sentence."""
    for part in mask.parts:
        if isinstance(part, PlacedTable):
            return part.places
        if isinstance(part, Segments):
            return Places(count_in_runs(part.query), count_in_runs(part.key))
    query, key = (torch.arange(size, device=device)[None] for size in (num_queries, num_keys))
    real = real_tokens(mask)
    return Places(query, key if real is None else (key - find_first(real)[:, None]).clamp(min=0))


@runtime_checkable
class LocalWindow(Protocol):
    """Restricts the visible keys; the second value multiplies the weights."""

    def __call__(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        allowed: Bool[Tensor, "#batch #head #query key"] | None,
        places: Places,
    ) -> tuple[
        Bool[Tensor, "batch head query key"], Float[Tensor, "batch head query key"] | None
    ]: ...


def _count_visible(allowed: Tensor | None, places: Places) -> Tensor:
    """S of every query, [batch, head, query, 1] with axes of one."""
    if allowed is None:
        return torch.full((1, 1, 1, 1), places.key.shape[1], device=places.key.device)
    return allowed.sum(-1, keepdim=True)


def _narrow(inside: Tensor, allowed: Tensor | None, q: Tensor) -> Tensor:
    both = inside if allowed is None else inside & allowed
    return both.expand(*q.shape[:3], both.shape[-1])


@dataclass(frozen=True)
class MonotonicWindow:
    """local_m: query t attends to keys around position t."""

    half_width: int

    def __call__(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        allowed: Bool[Tensor, "#batch #head #query key"] | None,
        places: Places,
    ) -> tuple[Bool[Tensor, "batch head query key"], None]:
        last = (_count_visible(allowed, places) - 1).clamp_min(0)
        centre = torch.minimum(places.query[:, None, :, None], last)
        distance = places.key[:, None, None, :] - centre
        return _narrow(distance.abs() <= self.half_width, allowed, q), None


class PredictiveWindow(nn.Module):
    """local_p: the query predicts the centre; `deviation` is σ."""

    def __init__(self, head_dim: int, *, half_width: int, deviation: float | None = None) -> None:
        super().__init__()
        self.half_width = half_width
        self.deviation = half_width / 2 if deviation is None else deviation
        self.place_hidden = make_matrix(head_dim, head_dim)
        self.place_vote = make_matrix(1, head_dim)

    def initial_weights(self) -> InitialWeights:
        return [(self.place_hidden, xavier()), (self.place_vote, xavier())]

    def centre(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        length: Int[Tensor, "#batch #head #query 1"],
    ) -> Float[Tensor, "batch head query 1"]:
        wide = bound(q)
        hidden = F.linear(wide, self.place_hidden.to(wide.dtype)).tanh()
        return length * F.linear(hidden, self.place_vote.to(hidden.dtype)).to(wide.dtype).sigmoid()

    def forward(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        allowed: Bool[Tensor, "#batch #head #query key"] | None,
        places: Places,
    ) -> tuple[Bool[Tensor, "batch head query key"], Float[Tensor, "batch head query key"]]:
        distance = places.key[:, None, None, :] - self.centre(q, _count_visible(allowed, places))
        nearness = (distance / self.deviation).square().mul(-0.5).exp()
        return _narrow(distance.abs() <= self.half_width, allowed, q), nearness


class LocalWindowKind(Kind):
    """Settings of one window over the source, and what it declares."""

    parameters: ClassVar[Mapping[str, str]] = {}
    """The names of its weights in the formula, with the attributes that hold them."""

    def build(self, *, head_dim: int) -> LocalWindow:
        raise NotImplementedError(f"{type(self).__name__} does not say what it builds")


class LocalMonotonicSettings(LocalWindowKind):
    kind: Literal["local_m"] = "local_m"
    half_width: int = Field(default=10, ge=0, le=1_000_000)
    """Luong's D: keys on each side of the centre."""

    title: ClassVar[Words] = ("local, monotonic", "局部（单调）")
    summary: ClassVar[Words] = (
        "Query t attends to keys near position t.",
        "第 t 个查询关注第 t 个键附近。",
    )
    paper: ClassVar[str] = "Luong et al. 2015, Effective Approaches to Attention-based NMT"

    def build(self, *, head_dim: int) -> LocalWindow:
        return MonotonicWindow(self.half_width)


class LocalPredictiveSettings(LocalWindowKind):
    kind: Literal["local_p"] = "local_p"
    half_width: int = Field(default=10, ge=1, le=1_000_000)
    """Luong's D: keys on each side of the centre."""
    deviation: float | None = Field(default=None, ge=1e-6, le=1e6, allow_inf_nan=False)
    """σ of the Gaussian; null: half_width / 2."""

    title: ClassVar[Words] = ("local, predicted", "局部（预测）")
    summary: ClassVar[Words] = (
        "The query predicts the position around which it attends.",
        "由查询预测要关注的位置。",
    )
    paper: ClassVar[str] = "Luong et al. 2015, Effective Approaches to Attention-based NMT"
    parameters: ClassVar[dict[str, str]] = {"W_p": "place_hidden", "v_p": "place_vote"}

    def build(self, *, head_dim: int) -> LocalWindow:
        return PredictiveWindow(head_dim, half_width=self.half_width, deviation=self.deviation)
