"""FLOATER: position vectors as the solution of a learned differential equation.

    dp/dt = h(p, t),    p(0) learned
    token at position m:  q_m + p_q(m δ),  k_m + p_k(m δ),  v_m + p_v(m δ)
    h(p, t) = W₂ [relu(W₁ [p, t] + b₁), t] + b₂

Liu, Yu, Dhillon & Hsieh 2020. One h is shared by all layers of a stack, and each layer has three
start vectors; sinusoidal encodings are added to the embeddings as usual. W₂, b₂ and p(0) start at
zero, so that the path is zero at every length and training begins with an ordinary Transformer:
time grows with the position, and any other h would move the path further away the longer the text
is. The path is defined for any length, and positions beyond those of training continue it.

The equation is solved by the classical Runge–Kutta method with one step for `stride` positions;
positions between are interpolated by the cubic through the values and slopes of both ends
(Hermite), with an error of the same fourth order. The paper takes five steps for every position,
which is so slow that it reuses the result for 400 updates and learns from one in 400. Here a row of
128 positions takes 8 steps, cheap enough to be computed in every update with its gradient: there is
no state to save, resume or record. No number of the path and none of its gradient exceeds
MAX_VALUE: a learned h may grow without bound over a large δ or a long text, and after an overflow
of float32 every attention weight would be NaN.

The solved path is cached only without gradients, when the weights do not change, because a decoding
step must not solve it again. `train()` and `eval()` clear the cache, and so does any change of a
weight that torch counts; torch does not count changes through `.data`.

Tested against: torchdiffeq (fixed and adaptive steps), sinusoids as the solution of a linear h,
order four; zero at the start; finite with a finite gradient under exploding weights, for the
smallest and the largest δ.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from headwise.attention.multi_head import Need, Relation
from headwise.initialization import InitialWeights, initial_linear, xavier, zeros
from headwise.positions.declaration import PositionKind
from headwise.positions.sinusoidal import SinusoidalPositions
from headwise.settings.kind import Words

Dynamics = Callable[[Tensor, float], Tensor]
MAX_VALUE = 1e3
"""Far beyond any useful path. Scores are products of two such numbers; backward passes that compute
exp(score - log-sum) again overflow where a score has fewer digits than that difference needs, which
happened with 10⁴."""


class _Bounded(torch.autograd.Function):
    """Bound numbers and, in the backward pass, gradients to -MAX_VALUE … MAX_VALUE.

    Each step multiplies the gradient by the slope of h. Over many long steps the product would
    overflow float32, although the path itself is bounded.
    """

    @staticmethod
    def forward(ctx: Any, p: Tensor) -> Tensor:
        ctx.save_for_backward(p.abs() <= MAX_VALUE)
        return p.clamp(-MAX_VALUE, MAX_VALUE)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (is_inside,) = ctx.saved_tensors
        return torch.where(is_inside, gradients[0].clamp(-MAX_VALUE, MAX_VALUE), 0.0)


def solve_path(
    dynamics: Dynamics,
    start: Float[Tensor, "*vector dim"],
    *,
    length: int,
    delta: float,
    stride: int,
) -> Float[Tensor, "time *vector dim"]:
    """p(0), p(δ), … p((length − 1) δ) by Runge–Kutta steps of stride · δ."""
    step = stride * delta
    # Weights of the values and slopes of both ends at the positions between them: Hermite's cubic.
    s = torch.arange(stride, dtype=torch.float64, device=start.device) / stride
    hermite = torch.stack(
        [2 * s**3 - 3 * s**2 + 1, s**3 - 2 * s**2 + s, 3 * s**2 - 2 * s**3, s**3 - s**2]
    ).to(start)
    bounded = _Bounded.apply
    places, value, slope = [], start, dynamics(start, 0.0)
    for number in range(max(1, -(-length // stride))):  # the path of no positions is empty
        time = number * step
        second = dynamics(bounded(value + step / 2 * slope), time + step / 2)
        third = dynamics(bounded(value + step / 2 * second), time + step / 2)
        fourth = dynamics(bounded(value + step * third), time + step)
        after = bounded(value + step / 6 * (slope + 2 * second + 2 * third + fourth))
        next_slope = dynamics(after, time + step)
        corners = torch.stack([value, step * slope, after, step * next_slope])
        places.append(bounded(torch.tensordot(hermite, corners, dims=([0], [0]))))
        value, slope = after, next_slope
    return torch.cat(places)[:length]


class PathDynamics(nn.Module):
    """h: two layers, both with the time as an additional input."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.widen = nn.Linear(dim + 1, dim)
        self.narrow = nn.Linear(dim + 1, dim)

    def initial_weights(self) -> InitialWeights:
        """Initially the path is zero at any length."""
        yield from initial_linear(self.widen, xavier())
        yield from initial_linear(self.narrow, zeros)

    def forward(self, p: Float[Tensor, "vector dim"], time: float) -> Float[Tensor, "vector dim"]:
        clock = p.new_full((*p.shape[:-1], 1), time)
        hidden = self.widen(torch.cat([p, clock], dim=-1)).relu()
        return self.narrow(torch.cat([hidden.to(p.dtype), clock], dim=-1)).to(p.dtype)


@dataclass(frozen=True)
class SolvedPath:
    """A solved path, and the weights it was computed from."""

    path: Float[Tensor, "time three dim"]
    weights: tuple[Tensor, ...]
    """Referenced here, so that their memory is not reused by other tensors at the same address."""
    versions: tuple[int, ...]

    def is_of(self, weights: Sequence[Tensor]) -> bool:
        same = all(
            own.data_ptr() == other.data_ptr()
            for own, other in zip(self.weights, weights, strict=True)
        )
        return same and self.versions == tuple(weight._version for weight in weights)


class ContinuousRelation(nn.Module):
    """The relation of one layer; `dynamics` is the same module in all layers of a stack."""

    kind = "continuous"
    needs: Need = "views"

    def __init__(self, dim: int, dynamics: PathDynamics, *, delta: float, stride: int) -> None:
        super().__init__()
        self.delta, self.stride = delta, stride
        self.dynamics = dynamics
        self.start = nn.Parameter(torch.zeros(3, dim))
        self._kept: SolvedPath | None = None

    def initial_weights(self) -> InitialWeights:
        return [(self.start, zeros)]

    # The signature is torch's.
    def train(self, mode: bool = True) -> "ContinuousRelation":  # noqa: FBT001, FBT002
        """A recorded update (CUDA graph) changes weights without being counted; this method is
        called between two validations."""
        self._kept = None
        return super().train(mode)

    def begin_moving(self, generator: torch.Generator) -> None:
        """Draw random weights, so that there is a path to show before training."""
        nn.init.xavier_uniform_(self.dynamics.narrow.weight, generator=generator)

    def table_by_position(self, length: int) -> Float[Tensor, "time dim"]:
        """The path of the keys."""
        path = solve_path(
            self.dynamics, self.start, length=length, delta=self.delta, stride=self.stride
        )
        return path[:, 1]

    def encode(
        self,
        q: Float[Tensor, "batch head time head_dim"],
        k: Float[Tensor, "batch head time head_dim"],
        v: Float[Tensor, "batch head time head_dim"],
        position: Int[Tensor, "batch time"],
        *,
        length: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        path = self._solve(length) if torch.is_grad_enabled() else self._recall(length)
        # [batch, time, 3, head, head_dim].
        added = path[position].unflatten(-1, (q.shape[1], -1)).to(q.dtype)
        added_q, added_k, added_v = added.permute(2, 0, 3, 1, 4).unbind()
        return q + added_q, k + added_k, v + added_v

    def bias(
        self, q: Float[Tensor, "batch head query head_dim"], *, num_keys: int, offset: int
    ) -> None:
        return None

    def _solve(self, length: int) -> Float[Tensor, "time three dim"]:
        return solve_path(
            self.dynamics, self.start, length=length, delta=self.delta, stride=self.stride
        )

    def _recall(self, length: int) -> Float[Tensor, "time three dim"]:
        """The path of the present weights, solved once; for twice the length if it turns out too
        short."""
        if torch.compiler.is_compiling():
            return self._solve(length)
        weights = (*self.dynamics.parameters(), self.start)
        if any(weight.is_inference() for weight in weights):
            # torch does not tell whether such weights were changed since.
            return self._solve(length)
        if self._kept is None or not self._kept.is_of(weights) or len(self._kept.path) < length:
            versions = tuple(weight._version for weight in weights)
            held = tuple(weight.detach() for weight in weights)
            self._kept = SolvedPath(self._solve(max(2 * length, 64)), held, versions)
        return self._kept.path


class Continuous(PositionKind):
    """FLOATER: a learned differential equation moves a vector along the sentence."""

    kind: Literal["continuous"] = "continuous"
    delta: float = Field(default=0.01, gt=0, le=1)
    """Time between two positions; the larger it is, the faster an update changes positions far from
    the start."""
    stride: int = Field(default=16, ge=1, le=1024)
    """Positions per Runge–Kutta step; those between are interpolated."""

    title: ClassVar[Words] = ("a learned path (FLOATER 2020)", "学得的路径（FLOATER 2020）")
    summary: ClassVar[Words] = (
        "A learned differential equation moves a vector along the sentence.",
        "学得的微分方程使一个向量沿句子移动。",
    )
    paper: ClassVar[str] = (
        "Liu, Yu, Dhillon & Hsieh 2020, Learning to Encode Position for Transformer with "
        "Continuous Dynamical Model"
    )
    needs: ClassVar[Need] = "views"
    formula: ClassVar[str] = "dp/dt = h(p, t);  k_m ← k_m + p(m δ)"

    def build_added(self, *, dim: int) -> nn.Module:
        return SinusoidalPositions(dim)

    def build_relations(
        self, *, num_layers: int, dim: int, num_heads: int, is_causal: bool
    ) -> Sequence[Relation | None]:
        dynamics = PathDynamics(dim)
        return [
            ContinuousRelation(dim, dynamics, delta=self.delta, stride=self.stride)
            for _ in range(num_layers)
        ]
