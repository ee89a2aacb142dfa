"""How alike are a query and a key? The first of attention's three steps, in eight ways; weights and the mean of values come after.

    dot         q · k                              Luong et al. 2015; large for long vectors
    scaled_dot  q · k / √dim                       Vaswani et al. 2017; variance one whatever the dim
    additive    w_v · tanh(W_q q + W_k k)          Bahdanau et al. 2015; q and k may differ in width
    concat      v · tanh(W [q; k])                 Luong et al. 2015: additive with W = [W_q W_k] as one matrix
    bilinear    q · W k                            Luong et al. 2015, their "general"; starts as scaled_dot
    cosine      scale · q · k / (|q| |k|)          Graves et al. 2014; only the angle counts, and a learned sharpness
    location    (W q)_j                            Luong et al. 2015: the query alone says which *place* j it wants
    gaussian    −|q − k|² / (2 width²)             Nadaraya & Watson 1964; with width⁴ = dim: scaled_dot − |k|²/(2√dim) + what softmax drops

A score is a function of (q, k) with any leading axes, so heads and recurrent decoders use the same one; the weights of a learned
score are shared by all heads (each has its own view of q and k already). Scores are computed in float32 at least, from numbers bounded
by 1e15, so that half precision and huge values stay finite.

Price: additive and concat compare in `hidden` numbers, O(query · key · hidden) operations *and* memory; above `CHUNK` of them queries go
in pieces that are worked out again in backward, so memory stays O(query · key) beside one piece.

Tested against: the formulas looped over single pairs in double precision, finite differences, numbers worked by hand.
"""

import math
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from headwise.attention.precision import widen
from headwise.errors import UsageError
from headwise.initialization import InitialWeights, scaled_identity, xavier, zeros

LARGEST = 1e15
"""Products of larger numbers would leave float32."""
FEW = 2**12
"""Differences whose squares are summed as one would by hand; of more, distances by themselves: a root and its square, a rounding apart."""
CHUNK = 2**26
"""Numbers of additive comparison held at once: 256 MiB in float32."""


def make_matrix(num_rows: int, num_columns: int) -> nn.Parameter:
    """Weights of a score. No nn.Linear, whose form for inference has other numbers inside than these formulas are written with."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(num_rows, num_columns)))


def bound(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """In float32 or better, and no larger than products can be."""
    return widen(x).clamp(-LARGEST, LARGEST)


def dot_scores(
    q: Float[Tensor, "*batch query dim"], k: Float[Tensor, "*batch key dim"]
) -> Float[Tensor, "*batch query key"]:
    return bound(q) @ bound(k).transpose(-2, -1)


def scaled_dot_scores(
    q: Float[Tensor, "*batch query dim"], k: Float[Tensor, "*batch key dim"]
) -> Float[Tensor, "*batch query key"]:
    return dot_scores(q, k) / math.sqrt(q.shape[-1])


def _map(
    x: Float[Tensor, "*batch time dim"], weight: Float[Tensor, "out dim"]
) -> Float[Tensor, "*batch time out"]:
    wide = bound(x)
    return F.linear(wide, weight.to(wide.dtype))


def _compare(a: Tensor, b: Tensor, vote: Tensor) -> Tensor:
    return (a.unsqueeze(-2) + b.unsqueeze(-3)).tanh() @ vote.to(a.dtype)


def _compare_in_pieces(
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
    # Nothing random happens inside, so there is no state of a generator to bring back.
    compared = [
        checkpoint(_compare, piece, b, vote, use_reentrant=False, preserve_rng_state=False)
        for piece in pieces
    ]
    return torch.cat(compared, dim=-2)


@runtime_checkable
class KeyMapping(Protocol):
    """A score whose work on the keys does not wait for a query: score(q, k) = compare(q, map_keys(k))."""

    def map_keys(
        self, k: Float[Tensor, "*batch key key_dim"]
    ) -> Float[Tensor, "*batch key mapped"]: ...

    def compare(
        self, q: Float[Tensor, "*batch query query_dim"], mapped: Float[Tensor, "*batch key mapped"]
    ) -> Float[Tensor, "*batch query key"]: ...


@runtime_checkable
class LearnedScore(Protocol):
    """A score with a matrix for queries of one width."""

    @property
    def query_dim(self) -> int: ...


class AdditiveScore(nn.Module):
    """A small network of one hidden layer compares; queries and keys may differ in width."""

    def __init__(self, query_dim: int, key_dim: int, *, hidden: int) -> None:
        super().__init__()
        self.query_map = make_matrix(hidden, query_dim)
        self.key_map = make_matrix(hidden, key_dim)
        self.vote = make_matrix(1, hidden)

    def initial_weights(self) -> InitialWeights:
        return [(one, xavier()) for one in (self.query_map, self.key_map, self.vote)]

    @property
    def query_dim(self) -> int:
        return self.query_map.shape[1]

    def forward(
        self, q: Float[Tensor, "*batch query query_dim"], k: Float[Tensor, "*batch key key_dim"]
    ) -> Float[Tensor, "*batch query key"]:
        return self.compare(q, self.map_keys(k))

    def map_keys(
        self, k: Float[Tensor, "*batch key key_dim"]
    ) -> Float[Tensor, "*batch key mapped"]:
        return _map(k, self.key_map)

    def compare(
        self, q: Float[Tensor, "*batch query query_dim"], mapped: Float[Tensor, "*batch key mapped"]
    ) -> Float[Tensor, "*batch query key"]:
        return _compare_in_pieces(_map(q, self.query_map), mapped, self.vote[0])


class ConcatScore(nn.Module):
    """The same network over query and key side by side; nothing is concatenated, as W [q; k] = W_q q + W_k k."""

    def __init__(self, query_dim: int, key_dim: int, *, hidden: int) -> None:
        super().__init__()
        self.query_dim = query_dim
        self.joint_map = make_matrix(hidden, query_dim + key_dim)
        self.vote = make_matrix(1, hidden)

    def initial_weights(self) -> InitialWeights:
        return [(self.joint_map, xavier()), (self.vote, xavier())]

    def forward(
        self, q: Float[Tensor, "*batch query query_dim"], k: Float[Tensor, "*batch key key_dim"]
    ) -> Float[Tensor, "*batch query key"]:
        return self.compare(q, self.map_keys(k))

    def map_keys(
        self, k: Float[Tensor, "*batch key key_dim"]
    ) -> Float[Tensor, "*batch key mapped"]:
        return _map(k, self.joint_map[:, self.query_dim :])

    def compare(
        self, q: Float[Tensor, "*batch query query_dim"], mapped: Float[Tensor, "*batch key mapped"]
    ) -> Float[Tensor, "*batch query key"]:
        return _compare_in_pieces(
            _map(q, self.joint_map[:, : self.query_dim]), mapped, self.vote[0]
        )


class BilinearScore(nn.Module):
    """A learned matrix between query and key; where it is the identity over √dim, the scaled dot product."""

    def __init__(self, query_dim: int, key_dim: int) -> None:
        super().__init__()
        self.between = make_matrix(query_dim, key_dim)

    def initial_weights(self) -> InitialWeights:
        return [(self.between, scaled_identity)]

    @property
    def query_dim(self) -> int:
        return self.between.shape[0]

    def forward(
        self, q: Float[Tensor, "*batch query query_dim"], k: Float[Tensor, "*batch key key_dim"]
    ) -> Float[Tensor, "*batch query key"]:
        return self.compare(q, self.map_keys(k))

    def map_keys(
        self, k: Float[Tensor, "*batch key key_dim"]
    ) -> Float[Tensor, "*batch key mapped"]:
        return _map(k, self.between)

    def compare(
        self, q: Float[Tensor, "*batch query query_dim"], mapped: Float[Tensor, "*batch key mapped"]
    ) -> Float[Tensor, "*batch query key"]:
        return bound(q) @ mapped.transpose(-2, -1)


class CosineScore(nn.Module):
    """The angle between query and key; `scale` (1 / temperature) says how sharply it counts, and is learned from there."""

    def __init__(self, *, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.log_scale = nn.Parameter(torch.zeros(()))

    def initial_weights(self) -> InitialWeights:
        return [(self.log_scale, zeros)]

    def forward(
        self, q: Float[Tensor, "*batch query dim"], k: Float[Tensor, "*batch key dim"]
    ) -> Float[Tensor, "*batch query key"]:
        # A vector of zeros has no direction: its cosine is 0, and the bound keeps its gradient finite. Of shorter vectors the squares leave the type.
        q, k = (
            F.normalize(x, dim=-1, eps=1e-6 if x.dtype == torch.float32 else 1e-100)
            for x in (bound(q), bound(k))
        )
        return self.scale * self.log_scale.exp().to(q.dtype) * (q @ k.transpose(-2, -1))


class GaussianScore(nn.Module):
    """Near keys count: softmax of it is kernel regression. The width is learned from where it starts."""

    def __init__(self, *, width: float) -> None:
        super().__init__()
        self.width = width
        self.log_width = nn.Parameter(torch.zeros(()))

    def initial_weights(self) -> InitialWeights:
        return [(self.log_width, zeros)]

    def forward(
        self, q: Float[Tensor, "*batch query dim"], k: Float[Tensor, "*batch key dim"]
    ) -> Float[Tensor, "*batch query key"]:
        q, k = bound(q), bound(k)
        # Each distance by itself: |q|² + |k|² − 2 q · k in a product would be a small difference of large squares for numbers far from
        # zero (years, seconds), and moved nearer by their mean, keys that are hidden would have a say in it. Not in autocast's half precision.
        with torch.autocast(q.device.type, enabled=False):
            if q.numel() * k.shape[-2] <= FEW:
                square = (q.unsqueeze(-2) - k.unsqueeze(-3)).square().sum(-1)
            else:
                square = torch.cdist(q, k, compute_mode="donot_use_mm_for_euclid_dist").square()
            return square / (-2 * (self.width * self.log_width.exp().to(q.dtype)).square())


class LocationScore(nn.Module):
    """The query names places of the sentence; what stands there is not looked at. Knows `max_length` places and no more."""

    def __init__(self, query_dim: int, *, max_length: int) -> None:
        super().__init__()
        self.place_map = make_matrix(max_length, query_dim)

    def initial_weights(self) -> InitialWeights:
        return [(self.place_map, xavier())]

    @property
    def query_dim(self) -> int:
        return self.place_map.shape[1]

    def forward(
        self,
        q: Float[Tensor, "*batch query query_dim"],
        k: Float[Tensor, "*batch key key_dim"],
        *,
        key_place: Int[Tensor, "#batch key"] | None = None,
    ) -> Float[Tensor, "*batch query key"]:
        """`key_place`: where each key stands in its sentence, if several share a row ([batch, head, query, …] then)."""
        num_keys, limit = k.shape[-2], self.place_map.shape[0]
        if num_keys > limit:
            raise UsageError(
                f"the location score knows {limit} places and was given {num_keys} keys; raise attention.score.max_length "
                "(a packed row counts whole), or take a score that reads the keys, such as attention.score.kind=additive",
                f"location 打分只认识 {limit} 个位置，却有 {num_keys} 个键；请增大 attention.score.max_length（打包行按整行计），"
                "或改用读取键的打分，例如 attention.score.kind=additive",
            )
        scores = _map(q, self.place_map)
        if key_place is None:
            return scores[..., :num_keys]
        index = key_place[:, None, None, :].expand(*scores.shape[:-1], num_keys)
        return scores.gather(-1, index)
