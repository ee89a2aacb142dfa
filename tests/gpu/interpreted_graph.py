"""The kernels of the graph recursion against their torch forms, in Triton's interpreter on a CPU:
run as a program, with TRITON_INTERPRET=1 (see test_graph_recursion.py).

Tiles of 4 and 8 vertices, so that small graphs have several; unread memory is full of NaN.
"""

import torch
from torch import Tensor

from headwise.gpu import graph_recursion as kernels
from headwise.randomness import torch_generator
from headwise.training.parallel.graph_alignment import best_path
from headwise.training.parallel.graph_loss import fits, plain_graph_loss
from tests.training.parallel.graphs import random_emissions, random_graph
from tests.training.parallel.test_graph_loss import trap

GENERATOR = torch_generator("interpreted graph")
VERTICES, LABELS = [13, 8, 2, 1, 3], [5, 7, 2, 1, 4]


def make(spread: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Emissions, links and sizes; one pair has more labels than vertices."""
    vertices, labels = torch.tensor(VERTICES), torch.tensor(LABELS)
    links = random_graph(GENERATOR, VERTICES, width=14, spread=spread)
    emissions = spread * random_emissions(GENERATOR, len(VERTICES), 14, 8)
    return emissions, links, vertices, torch.where(fits(vertices, labels), labels, 0)


def compare(given: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
    emissions, links, *counts = given
    exact = emissions.clone().requires_grad_(), links.clone().requires_grad_()
    loss = plain_graph_loss(*exact, *counts)
    expected = torch.autograd.grad(loss.sum(), exact)
    unread = emissions.clone()
    for pair, (count, length) in enumerate(zip(*map(Tensor.tolist, counts), strict=True)):
        unread[pair, count:], unread[pair, :, length:] = torch.nan, torch.nan
    likelihood, by_emission, by_link = kernels.sum_paths(
        unread.float(), links.float(), *counts, gradients=True
    )
    torch.testing.assert_close(-likelihood, loss.detach(), rtol=1e-6, atol=1e-5)
    for found, wanted in ((by_emission, expected[0]), (by_link, expected[1])):
        assert found is not None
        torch.testing.assert_close(-found.double(), wanted, rtol=1e-4, atol=1e-4)
    only = kernels.sum_paths(unread.float(), links.float(), *counts, gradients=False)
    assert only[1] is None
    assert only[2] is None
    assert torch.equal(only[0], likelihood)


def check_sums() -> None:
    for spread in (1.0, 10.0):
        compare(make(spread))


def check_underflow() -> None:
    for depth in (100.0, 3000.0):
        compare(trap(depth))


def check_impossible() -> None:
    emissions, links, *counts = make(1.0)
    emissions[0, :, 2] = -torch.inf
    likelihood, by_emission, by_link = kernels.sum_paths(emissions, links, *counts, gradients=True)
    assert likelihood[0] == -torch.inf
    assert likelihood[1:].isfinite().all()
    assert by_emission is not None
    assert by_link is not None
    assert by_emission.isfinite().all()
    assert by_link.isfinite().all()
    assert by_emission[0].abs().sum() == by_link[0].abs().sum() == 0


def check_best() -> None:
    given = make(3.0)
    assert torch.equal(kernels.trace_best(*given), best_path(*given))


if __name__ == "__main__":
    torch.set_num_threads(1)
    kernels.OWN, kernels.OTHER, kernels.SIDE = 8, 4, 8
    for check in (check_sums, check_underflow, check_impossible, check_best):
        check()
        print(check.__name__)
