"""Positions as a path: a learned differential equation carries a vector along the sentence (FLOATER).

    dp/dt = h(p, t),    p(0) learned        token at place m:  q_m + p_q(m δ),  k_m + p_k(m δ),  v_m + p_v(m δ)
    h(p, t) = W₂ [relu(W₁ [p, t] + b₁), t] + b₂

Liu, Yu, Dhillon & Hsieh 2020. One h is shared by all layers of a stack, each layer has three start vectors; sinusoids of the place
are added to the embeddings as always, and the path begins near zero, so training begins with an ordinary Transformer. The path goes
on for any length, and a place that was never trained continues the same motion.

The equation is solved by the classical method of Runge and Kutta, one step for `stride` places; the places between are read
from the cubic that has the ends' values and slopes (Hermite), an error of the same fourth order. The paper steps five times for
every place, which is so slow that it keeps the result for 400 updates and learns from one in 400. A row of 128 places is 8 steps here,
which is cheap enough to be done in every update with its gradient: there is no state, so nothing to save, resume or record.
Only without gradients, when weights stand still, is the solved path kept: a decoding step must not walk it again.

Tested against: torchdiffeq (fixed and adaptive steps), sinusoids as the solution of a linear h, order four.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.attention.multi_head import Need

Dynamics = Callable[[Tensor, float], Tensor]


def solve_path(
    dynamics: Dynamics, start: Float[Tensor, "*vector dim"], *, length: int, delta: float, stride: int
) -> Float[Tensor, "time *vector dim"]:
    """p(0), p(δ), … p((length − 1) δ) by Runge–Kutta steps of stride · δ."""
    step = stride * delta
    # Weights of the ends' values and slopes at the places between: Hermite's cubic.
    s = torch.arange(stride, dtype=torch.float64, device=start.device) / stride
    hermite = torch.stack([2 * s**3 - 3 * s**2 + 1, s**3 - 2 * s**2 + s, 3 * s**2 - 2 * s**3, s**3 - s**2]).to(start)
    places, value, slope = [], start, dynamics(start, 0.0)
    for number in range(-(-length // stride)):
        time = number * step
        second = dynamics(value + step / 2 * slope, time + step / 2)
        third = dynamics(value + step / 2 * second, time + step / 2)
        fourth = dynamics(value + step * third, time + step)
        after = value + step / 6 * (slope + 2 * second + 2 * third + fourth)
        next_slope = dynamics(after, time + step)
        corners = torch.stack([value, step * slope, after, step * next_slope])
        places.append(torch.tensordot(hermite, corners, dims=([0], [0])))
        value, slope = after, next_slope
    return torch.cat(places)[:length]


class PathDynamics(nn.Module):
    """h: two layers that are both told the time."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.widen = nn.Linear(dim + 1, dim)
        self.narrow = nn.Linear(dim + 1, dim)

    def forward(self, p: Float[Tensor, "vector dim"], time: float) -> Float[Tensor, "vector dim"]:
        clock = p.new_full((*p.shape[:-1], 1), time)
        hidden = self.widen(torch.cat([p, clock], dim=-1)).relu()
        return self.narrow(torch.cat([hidden.to(p.dtype), clock], dim=-1)).to(p.dtype)


class ContinuousRelation(nn.Module):
    """What self-attention is told in one layer; `dynamics` is the same module in all layers of a stack."""

    kind = "continuous"
    needs: Need = "views"

    def __init__(self, dim: int, dynamics: PathDynamics, *, delta: float, stride: int) -> None:
        super().__init__()
        self.delta, self.stride = delta, stride
        self.dynamics = dynamics
        self.start = nn.Parameter(torch.zeros(3, dim))
        self._kept: tuple[tuple[tuple[int, int], ...], Tensor] | None = None

    def place(
        self,
        q: Float[Tensor, "batch head time head_dim"],
        k: Float[Tensor, "batch head time head_dim"],
        v: Float[Tensor, "batch head time head_dim"],
        position: Int[Tensor, "batch time"],
        *,
        length: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        path = self._solve(length) if torch.is_grad_enabled() else self._recall(length)
        added = path[position].unflatten(-1, (q.shape[1], -1)).to(q.dtype)  # [batch, time, 3, head, head_dim]
        added_q, added_k, added_v = added.permute(2, 0, 3, 1, 4).unbind()
        return q + added_q, k + added_k, v + added_v

    def bias(self, q: Float[Tensor, "batch head query head_dim"], *, num_keys: int, offset: int) -> None:
        return None

    def _solve(self, length: int) -> Float[Tensor, "time three dim"]:
        return solve_path(self.dynamics, self.start, length=length, delta=self.delta, stride=self.stride)

    def _recall(self, length: int) -> Float[Tensor, "time three dim"]:
        """The path of these very weights, solved once and for twice the length when it turns out too short."""
        if torch.compiler.is_compiling():
            return self._solve(length)
        weights = (*self.dynamics.parameters(), self.start)
        if any(weight.is_inference() for weight in weights):
            return self._solve(length)  # whether such weights were changed since, torch does not tell
        now = tuple((weight.data_ptr(), weight._version) for weight in weights)
        if self._kept is None or self._kept[0] != now or len(self._kept[1]) < length:
            self._kept = (now, self._solve(max(2 * length, 64)))
        return self._kept[1]
