"""A training whose cost is known; and every task tells parameters, time and memory before it
trains."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from headwise.tasks.training_cost import (
    ProcessorShare,
    TrainingCost,
    Trial,
    measure_cost,
    time_rows,
)
from headwise.training.choices import TrainingSettings
from headwise.training.losses import LossSums


class Notes:
    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


@dataclass(frozen=True)
class Squares:
    """The backward pass of (x W)² keeps x and x W."""

    module: nn.Module

    def loss(self, batch: Tensor) -> LossSums:
        total = self.module(batch).pow(2).sum()
        return LossSums(total, total.detach(), torch.tensor(1))


@pytest.mark.parametrize("rows", [1, 2, 13])
def test_memory_is_that_of_weights_optimiser_and_what_is_kept(rows: int) -> None:
    module = nn.Linear(7, 11, bias=False)
    training = TrainingSettings(steps=3, batch_tokens=16, device="cpu", precision="fp32")
    cost = measure_cost(
        Trial(Squares(module), rows, lambda count: torch.ones(count, 7)), training=training
    )
    assert cost.parameters == 77
    assert cost.memory == 16 * 77 + rows * 4 * (7 + 11)
    assert cost.seconds is not None
    assert 0 < cost.seconds < 60
    assert module.weight.grad is None


def test_frozen_weights_need_no_optimiser() -> None:
    module = nn.Sequential(nn.Linear(7, 11, bias=False), nn.Linear(11, 5, bias=False))
    module[0].weight.requires_grad_(requires_grad=False)
    training = TrainingSettings(steps=3, batch_tokens=16, device="cpu", precision="fp32")
    cost = measure_cost(
        Trial(Squares(module), 1, lambda count: torch.ones(count, 7)), training=training
    )
    assert cost.memory == 16 * 55 + 4 * 77 + 4 * (11 + 5)


def test_it_is_told_in_words_and_in_numbers() -> None:
    notes: Any = Notes()
    found = TrainingCost(1_000, 7_200.4, 300 << 20).tell(notes, recipe_name="base")
    assert found == {"parameters": 1_000, "expected_memory_mib": 300, "expected_seconds": 7_200}
    assert notes.said == [
        "about 2.0 h of training on this machine, and 300 MiB of memory; "
        "`headwise plan base` says why and what helps"
    ]
    assert TrainingCost(1_000, None, 5).tell(notes) == {
        "parameters": 1_000,
        "expected_memory_mib": 1,
    }
    assert notes.said[1] == "about 1 MiB of memory"


@pytest.mark.parametrize(
    ("fixed", "each", "tried"), [(0.01, 0.001, 31), (0.5, 0.25, 2), (0.01, 0.1, 4)]
)
def test_time_is_drawn_out_along_a_line(fixed: float, each: float, tried: int) -> None:
    now, asked = [0.0], list[int]()

    def step(rows: int) -> None:
        asked.append(rows)
        now[0] += fixed + each * rows

    assert time_rows(step, 31, now=lambda: now[0]) == pytest.approx(fixed + 31 * each)
    assert max(asked) == tried, "no more rows than it takes to see them"


def test_a_row_that_takes_long_is_enough() -> None:
    now, asked = [0.0], list[int]()

    def step(rows: int) -> None:
        asked.append(rows)
        now[0] += 6.0

    assert time_rows(step, 7, now=lambda: now[0]) == 42.0
    assert asked == [1]


def test_a_model_is_left_as_it_was() -> None:
    module = nn.Sequential(nn.Linear(7, 11), nn.Dropout(0.5)).eval()
    before = {name: weight.clone() for name, weight in module.state_dict().items()}
    state = torch.random.get_rng_state()
    training = TrainingSettings(steps=10, batch_tokens=16, device="cpu", precision="fp32")
    measure_cost(Trial(Squares(module), 3, lambda count: torch.ones(count, 7)), training=training)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(weight, before[name]) for name, weight in module.state_dict().items())
    assert all(weight.grad is None for weight in module.parameters())
    assert not module.training


def test_one_disturbed_measurement_is_not_multiplied_by_all_rows() -> None:
    """2 rows took seven times as long as 1, so a row cannot take more than half of it."""
    now, durations = [0.0], iter([0.1, 0.1, 0.7])

    def step(count: int) -> None:
        now[0] += next(durations)

    assert time_rows(step, 100, now=lambda: now[0]) == pytest.approx(0.7 * 50)


@pytest.mark.parametrize(("processor", "is_taken"), [(10.0, False), (20.0, False), (2.5, True)])
def test_a_busy_machine_is_known_by_its_processor_time(processor: float, *, is_taken: bool) -> None:
    wall, spent = iter([5.0, 15.0]), iter([1.0, 1.0 + processor])
    share = ProcessorShare(wall=lambda: next(wall), processor=lambda: next(spent))
    assert share.is_taken() is is_taken


@pytest.mark.parametrize("is_busy", [True, False])
def test_a_time_of_a_busy_machine_is_told_as_such(*, is_busy: bool) -> None:
    notes: Any = Notes()
    TrainingCost(77, 10.0, 1 << 20, is_machine_busy=is_busy).tell(notes)
    assert ("other programs used the processor" in notes.said[0]) == is_busy
