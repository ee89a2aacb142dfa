import math

import pytest
import torch
from torch import nn

from headwise.training.choices import AdamWOptimizer
from headwise.training.optimizers import (
    build_optimizer,
    decaying_names,
    measure_gradients,
    set_learning_rate,
    step_unless,
)


class Everything(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 3)
        self.positions = nn.ParameterDict({"weight": nn.Parameter(torch.ones(7, 3))})
        self.relative_embedding = nn.Linear(3, 3, bias=False)
        self.inner = nn.Linear(3, 11)
        self.kernel = nn.Conv1d(3, 3, 2)
        self.norm = nn.LayerNorm(3)
        self.gate = nn.Parameter(torch.zeros(()))
        self.tied = nn.Linear(3, 5, bias=False)
        self.tied.weight = self.table.weight
        self.free = nn.Linear(3, 5, bias=False)


def test_the_table_of_what_decays():
    assert decaying_names(Everything()) == {"inner.weight", "kernel.weight", "free.weight"}


def test_groups_hold_every_learning_parameter_once():
    module = Everything()
    module.inner.bias.requires_grad_(False)
    optimizer = build_optimizer(AdamWOptimizer(weight_decay=0.3), module)
    grouped = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    learning = [parameter for parameter in module.parameters() if parameter.requires_grad]
    assert {id(p) for p in grouped} == {id(p) for p in learning}
    assert len(grouped) == len(learning)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.3, 0.0]
    assert optimizer.defaults["fused"]


def test_three_steps_by_the_formula():
    module = nn.Linear(1, 1, bias=False).double()
    with torch.no_grad():
        module.weight.fill_(2.0)
    settings = AdamWOptimizer(betas=(0.8, 0.9), eps=1e-3, weight_decay=0.1)
    optimizer = build_optimizer(settings, module)
    weight, mean, square = 2.0, 0.0, 0.0
    for step, (gradient, rate) in enumerate([(0.5, 0.01), (-2.0, 0.02), (0.1, 0.03)], start=1):
        module.weight.grad = torch.full((1, 1), gradient, dtype=torch.float64)
        set_learning_rate(optimizer, rate)
        step_unless(optimizer, skip=torch.tensor(False), divisor=torch.tensor(1.0))
        mean, square = 0.8 * mean + 0.2 * gradient, 0.9 * square + 0.1 * gradient**2
        corrected = (mean / (1 - 0.8**step)) / (math.sqrt(square / (1 - 0.9**step)) + 1e-3)
        weight = weight - rate * (corrected + 0.1 * weight)
        assert module.weight.item() == pytest.approx(weight, rel=1e-12)


def test_a_skipped_step_leaves_no_trace():
    def run(gradients: list[float]) -> list[torch.Tensor]:
        module = nn.Linear(1, 1, bias=False)
        nn.init.ones_(module.weight)
        optimizer = build_optimizer(AdamWOptimizer(weight_decay=0.1), module)
        for gradient in gradients:
            module.weight.grad = torch.full((1, 1), gradient)
            set_learning_rate(optimizer, 0.1)
            step_unless(
                optimizer, skip=torch.tensor(not math.isfinite(gradient)), divisor=torch.tensor(1.0)
            )
        return [module.weight.detach(), *optimizer.state[module.weight].values()]

    for with_skip, without in zip(
        run([0.3, math.nan, math.inf, -0.2]), run([0.3, -0.2]), strict=True
    ):
        assert torch.equal(with_skip, without)


@pytest.mark.parametrize("clip", [None, 0.5, 100.0])
def test_mean_and_clipping_by_the_formula(clip):
    parameters = [
        nn.Parameter(torch.zeros(2)),
        nn.Parameter(torch.zeros(1)),
        nn.Parameter(torch.zeros(1)),
    ]
    parameters[0].grad, parameters[1].grad = torch.tensor([6.0, 0.0]), torch.tensor([8.0])
    norm, divisor = measure_gradients(parameters, divisor=torch.tensor(5.0), clip=clip)
    assert norm.item() == pytest.approx(2.0)
    assert divisor.item() == pytest.approx(20.0 if clip == 0.5 else 5.0)


def test_the_optimiser_divides_as_it_reads():
    def run(gradient: float, divisor: float) -> float:
        module = nn.Linear(1, 1, bias=False)
        nn.init.ones_(module.weight)
        optimizer = build_optimizer(AdamWOptimizer(eps=0.1), module)
        module.weight.grad = torch.full((1, 1), gradient)
        set_learning_rate(optimizer, 0.1)
        step_unless(optimizer, skip=torch.tensor(False), divisor=torch.tensor(divisor))
        return module.weight.item()

    assert run(1.5, 4.0) == run(0.375, 1.0) != run(1.5, 1.0)
