"""A training whose cost is known; and every task tells parameters, time and memory before it trains."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from headwise.tasks.training_cost import TrainingCost, measure_cost
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
        Squares(module), lambda count: torch.ones(count, 7), rows=rows, training=training
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
        Squares(module), lambda count: torch.ones(count, 7), rows=1, training=training
    )
    assert cost.memory == 16 * 55 + 4 * 77 + 4 * (11 + 5)


def test_it_is_told_in_words_and_in_numbers() -> None:
    notes: Any = Notes()
    found = TrainingCost(1_000, 7_200.4, 300 << 20).tell(notes)
    assert found == {"parameters": 1_000, "expected_memory_mib": 300, "expected_seconds": 7_200}
    assert notes.said == ["about 2.0 h of training on this machine, and 300 MiB of memory"]
    assert TrainingCost(1_000, None, 5).tell(notes) == {
        "parameters": 1_000,
        "expected_memory_mib": 1,
    }
    assert notes.said[1] == "about 1 MiB of memory"
