"""Waves: the formula element by element, the rotation property, and a table that grows."""

import math

import pytest
import torch

from headwise.positions.sinusoidal import SinusoidalPositions, sinusoidal_table

DIM = 14


def test_the_formula() -> None:
    table = sinusoidal_table(31, DIM)
    for position in (0, 1, 7, 30):
        for i in range(DIM // 2):
            angle = position / 10000 ** (2 * i / DIM)
            assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-7)
            assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-7)


def test_halves_are_the_same_numbers_in_another_order() -> None:
    interleaved, halves = sinusoidal_table(17, DIM), sinusoidal_table(17, DIM, layout="halves")
    assert halves.equal(torch.cat([interleaved[:, 0::2], interleaved[:, 1::2]], dim=1))


@pytest.mark.parametrize("step", [1, 5, 13])
def test_a_step_is_the_same_rotation_everywhere(step: int) -> None:
    table = sinusoidal_table(97, DIM).double()
    for i in range(DIM // 2):
        angle = step / 10000 ** (2 * i / DIM)
        turn = torch.tensor(
            [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
        ).double()
        pair = table[:, 2 * i : 2 * i + 2]
        torch.testing.assert_close(pair[:-step] @ turn.T, pair[step:], atol=1e-6, rtol=0)


def test_products_depend_on_the_distance_alone() -> None:
    table = sinusoidal_table(53, DIM).double()
    products = table @ table.T
    torch.testing.assert_close(products[1:, 1:], products[:-1, :-1], atol=1e-5, rtol=0)


def test_an_odd_width_has_one_sine_more() -> None:
    assert sinusoidal_table(5, 7).shape == sinusoidal_table(5, 7, layout="halves").shape == (5, 7)
    assert sinusoidal_table(5, 7)[:, 6].equal(sinusoidal_table(5, 7, layout="halves")[:, 3])


def test_positions_are_looked_up_and_the_table_grows() -> None:
    positions = SinusoidalPositions(DIM, initial_length=3)
    assert list(positions.parameters()) == []
    assert positions.state_dict() == {}
    place = torch.tensor([[0, 1, 2, 0], [0, 30, 2, 1]])
    assert positions(place, length=31).equal(sinusoidal_table(31, DIM)[place])
    assert positions.table.shape[0] >= 31


def test_growing_keeps_the_type_and_does_not_disturb_training() -> None:
    positions = SinusoidalPositions(DIM, initial_length=2).to(torch.float64)
    with torch.inference_mode():
        positions(torch.tensor([[4]]), length=5)
    weight = torch.ones(DIM, dtype=torch.float64, requires_grad=True)
    (positions(torch.tensor([[4]]), length=5) * weight).sum().backward()
    assert weight.grad is not None
    assert weight.grad.dtype == torch.float64
