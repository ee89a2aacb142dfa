"""The path: torchdiffeq's solvers, sinusoids as the solution of a linear equation, the order of the error, what is kept."""

import pytest
import torch
from torch import Tensor
from torchdiffeq import odeint

from headwise.positions.continuous import ContinuousRelation, PathDynamics, solve_path
from headwise.positions.sinusoidal import sinusoidal_table

DIM = 6


def make(generator: torch.Generator) -> ContinuousRelation:
    relation = ContinuousRelation(DIM, PathDynamics(DIM), delta=0.1, stride=4).double()
    with torch.no_grad():
        for parameter in relation.parameters():
            parameter.normal_(0, 0.5, generator=generator)
    return relation


def test_torchdiffeq_walks_the_same_path(generator: torch.Generator) -> None:
    relation = make(generator)
    times = torch.arange(37, dtype=torch.float64) * 0.1
    with torch.no_grad():
        ours = solve_path(relation.dynamics, relation.start, length=37, delta=0.1, stride=1)
        field = lambda time, p: relation.dynamics(p, time.item())  # noqa: E731
        fixed = odeint(field, relation.start, times, method="rk4", options={"step_size": 0.1})
        exact = odeint(field, relation.start, times, method="dopri5", rtol=1e-9, atol=1e-10)
    size = exact.abs().max().item()
    assert (ours - exact).abs().max() < 3e-3 * size
    # torchdiffeq takes the 3/8 rule, another method of the same order.
    assert (ours - exact).abs().max() < 10 * (fixed - exact).abs().max()


def turning(p: Tensor, time: float) -> Tensor:
    """The linear equation of which sinusoids are the solution: each pair turns at its rate."""
    rates = 10000.0 ** (-torch.arange(0, DIM, 2, dtype=p.dtype) / DIM)
    sine, cosine = p[..., 0::2], p[..., 1::2]
    return torch.stack([cosine * rates, -sine * rates], dim=-1).flatten(-2)


def test_sinusoids_are_one_of_the_paths() -> None:
    start = torch.tensor([0.0, 1.0] * (DIM // 2), dtype=torch.float64)
    path = solve_path(turning, start, length=50, delta=1.0, stride=1)
    # A step of one radian is coarse; in steps of a tenth the table is met.
    fine = solve_path(turning, start, length=500, delta=0.1, stride=1)[::10]
    torch.testing.assert_close(fine.float(), sinusoidal_table(50, DIM), atol=1e-4, rtol=0)
    assert (path - fine).abs().max() > 1e-3


def test_the_error_is_of_fourth_order_between_the_steps_too() -> None:
    start = torch.tensor([0.0, 1.0] * (DIM // 2), dtype=torch.float64)
    errors = []
    for stride in (32, 16):
        path = solve_path(turning, start, length=64 * 64, delta=1 / 64, stride=stride)
        angles = torch.arange(64 * 64, dtype=torch.float64)[:, None] / 64 * 10000.0 ** (-torch.arange(0, DIM, 2) / DIM)
        errors.append((path[:, 0::2] - angles.sin()).abs().max().item())
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.3)


def test_what_is_kept_is_forgotten_when_a_weight_changes(generator: torch.Generator) -> None:
    relation = make(generator)
    x, position = torch.zeros(1, 2, 5, 3, dtype=torch.float64), torch.arange(5)[None]

    def place() -> Tensor:
        return torch.stack(relation.place(x, x, x, position, length=5))

    learned = place()
    assert learned.requires_grad
    with torch.no_grad():
        first = place()
        torch.testing.assert_close(first, learned.detach())
        assert place().equal(first)
        kept = relation._kept
        place()
        assert relation._kept is kept
        relation.start.add_(1.0)
        assert not torch.allclose(place(), first)


def test_weights_made_for_inference_alone_have_a_path_too(generator: torch.Generator) -> None:
    """Nobody counts their changes, so it is walked every time."""
    with torch.inference_mode():
        relation = make(generator)
        heads = torch.zeros(1, 2, 5, 3, dtype=torch.float64)
        placed = relation.place(heads, heads, heads, torch.arange(5)[None], length=5)
        assert relation._kept is None
        path = solve_path(relation.dynamics, relation.start, length=5, delta=0.1, stride=4)
        torch.testing.assert_close(placed[0][0].transpose(0, 1).flatten(1), path[:, 0])
