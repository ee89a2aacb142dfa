"""The path: torchdiffeq's solvers, sinusoids as the solution of a linear equation, the order of the
error, what is kept."""

import pytest
import torch
from torch import Tensor
from torchdiffeq import odeint

from headwise.initialization import initialize
from headwise.positions.choices import Continuous, build_relations
from headwise.positions.continuous import MAX_VALUE, ContinuousRelation, PathDynamics, solve_path
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
        angles = (
            torch.arange(64 * 64, dtype=torch.float64)[:, None]
            / 64
            * 10000.0 ** (-torch.arange(0, DIM, 2) / DIM)
        )
        errors.append((path[:, 0::2] - angles.sin()).abs().max().item())
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.3)


def test_what_is_kept_is_forgotten_when_a_weight_changes(generator: torch.Generator) -> None:
    relation = make(generator)
    x, position = torch.zeros(1, 2, 5, 3, dtype=torch.float64), torch.arange(5)[None]

    def place() -> Tensor:
        return torch.stack(relation.encode(x, x, x, position, length=5))

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
        placed = relation.encode(heads, heads, heads, torch.arange(5)[None], length=5)
        assert relation._kept is None
        path = solve_path(relation.dynamics, relation.start, length=5, delta=0.1, stride=4)
        torch.testing.assert_close(placed[0][0].transpose(0, 1).flatten(1), path[:, 0])


def test_the_path_is_that_of_the_weights_now_whatever_stands_at_their_address(
    generator: torch.Generator,
) -> None:
    """New weights are often put where the old ones were freed, and have been changed as often: that
    is, never."""
    relation = make(generator).eval()
    heads = torch.zeros(1, 2, 5, 3, dtype=torch.float64)
    for number in range(20):
        relation.start = torch.nn.Parameter(
            torch.full((3, DIM), float(number), dtype=torch.float64)
        )
        with torch.no_grad():
            placed = relation.encode(
                heads, heads, heads, torch.zeros(1, 5, dtype=torch.long), length=5
            )
        assert placed[0].eq(number).all()


def test_a_change_that_torch_does_not_count_is_seen_after_the_next_eval(
    generator: torch.Generator,
) -> None:
    relation = make(generator).eval()
    heads = torch.zeros(1, 2, 5, 3, dtype=torch.float64)
    for number in (1.0, 2.0):
        relation.start.data.fill_(number)  # as a recorded update writes it
        relation.train().eval()
        with torch.no_grad():
            placed = relation.encode(
                heads, heads, heads, torch.zeros(1, 5, dtype=torch.long), length=5
            )
        assert placed[0].eq(number).all()


@pytest.mark.parametrize("delta", [1e-6, 0.01, 0.5, 1.0])
def test_a_model_begins_with_a_path_of_zeros_at_every_length(
    delta: float, generator: torch.Generator
) -> None:
    settings = Continuous(delta=delta, stride=16)
    relation = build_relations(settings, num_layers=1, dim=32, num_heads=4, is_causal=True)[0]
    assert isinstance(relation, ContinuousRelation)
    initialize(relation, generator)
    path = solve_path(relation.dynamics, relation.start, length=4096, delta=delta, stride=16)
    assert path.eq(0).all()
    # And yet it learns: every weight of the outer layer hears of places far away.
    path[1:].sum().backward()
    assert relation.dynamics.narrow.weight.grad is not None
    assert relation.dynamics.narrow.weight.grad.abs().gt(0).float().mean() > 0.2


@pytest.mark.parametrize("delta", [1e-6, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("stride", [1, 16, 1024])
@pytest.mark.parametrize("size", [0.5, 1e3])
def test_no_weights_make_a_path_that_is_no_number(
    delta: float, stride: int, size: float, generator: torch.Generator
) -> None:
    dynamics = PathDynamics(DIM)
    with torch.no_grad():
        for parameter in dynamics.parameters():
            parameter.normal_(0, size, generator=generator)
        path = solve_path(dynamics, torch.ones(3, DIM), length=1024, delta=delta, stride=stride)
    assert path.isfinite().all()
    assert path.abs().max() <= MAX_VALUE


def test_a_gradient_stays_a_number_where_the_path_does_not_leave_zero() -> None:
    """h(p) = 10 p from p = 0: the path is zero, and each step of 16 multiplies its gradient by some
    10⁷."""
    dynamics, start = PathDynamics(DIM), torch.zeros(3, DIM, requires_grad=True)
    with torch.no_grad():
        for layer in (dynamics.widen, dynamics.narrow):
            layer.weight.zero_()
            layer.weight[:, :DIM] = torch.eye(DIM)
        dynamics.widen.bias.fill_(1.0)  # where relu passes everything on
        dynamics.narrow.weight.mul_(10.0)
        dynamics.narrow.bias.fill_(-10.0)
    path = solve_path(dynamics, start, length=256, delta=1.0, stride=16)
    assert path.eq(0).all()
    path.sum().backward()
    for parameter in (start, *dynamics.parameters()):
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()


def test_bounds_that_are_not_reached_leave_gradients_alone(generator: torch.Generator) -> None:
    relation = make(generator)
    weights = tuple(relation.parameters())

    def path(*_: Tensor) -> Tensor:
        return solve_path(relation.dynamics, relation.start, length=9, delta=0.1, stride=4)

    assert torch.autograd.gradcheck(path, weights, atol=1e-6)
