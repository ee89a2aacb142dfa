"""Rings, overlap and layouts, by hand."""

import pytest

from headwise.planning.cost_prediction import MemoryParts
from headwise.planning.multi_device import BUCKET_BYTES, DeviceLayout, arrange, choose_layout, scale

MEMORY = MemoryParts(
    weights=400, gradients=100, optimizer=800, averaging=0, activations=6400, workspace=50
)


def test_a_ring_of_four_sends_one_and_a_half_times_the_gradients() -> None:
    four = scale(1.0, gradient_bytes=4 << 30, devices=4, link=4 << 30)
    assert four.traffic == int(1.5 * (4 << 30))
    assert four.exposed_seconds == pytest.approx(1.5 - 0.6)
    assert four.step_seconds == pytest.approx(1.9)
    assert scale(
        1.0, gradient_bytes=4 << 30, devices=4, link=4 << 30, parallel="sharded"
    ).traffic == int(2.25 * (4 << 30))


def test_what_hides_leaves_the_last_bucket() -> None:
    hidden = scale(10.0, gradient_bytes=1 << 30, devices=64, link=1 << 30)
    assert hidden.exposed_seconds == pytest.approx(BUCKET_BYTES / (1 << 30))
    alone = scale(10.0, gradient_bytes=1 << 30, devices=1, link=0.0)
    assert (alone.traffic, alone.exposed_seconds, alone.step_seconds) == (0, 0.0, 10.0)


def test_layouts_divide_what_they_should() -> None:
    half = arrange(MEMORY, DeviceLayout(accumulation=2), devices=1, num_blocks=4)
    assert (half.activations, half.gradients, half.weights) == (3200, 400, 400)
    shared = arrange(MEMORY, DeviceLayout("sharded"), devices=4, num_blocks=4)
    assert (shared.optimizer, shared.activations, shared.weights) == (200, 1600, 100 + 200)
    again = arrange(MEMORY, DeviceLayout(recompute=True), devices=1, num_blocks=4)
    assert again.activations == 3200


def test_the_cheapest_layout_that_fits_is_chosen() -> None:
    def choose(room: float, devices: int = 1) -> DeviceLayout | None:
        return choose_layout(MEMORY, devices=devices, num_blocks=8, rows=16, room=room)

    assert choose(8000) == DeviceLayout()
    assert choose(5000) == DeviceLayout(accumulation=2)
    assert choose(2060) == DeviceLayout(accumulation=16)
    assert choose(1900) == DeviceLayout(accumulation=8, recompute=True)
    assert choose(1700, devices=4) == DeviceLayout("sharded", accumulation=2)
    assert choose(100) is None
