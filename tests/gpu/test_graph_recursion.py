"""The kernels of the graph recursion equal torch on a GPU (elsewhere: test_kernels.py)."""

import pytest
import torch

from tests.training.parallel.graphs import random_emissions, random_graph


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_loss_and_path_on_a_gpu(generator: torch.Generator) -> None:
    from headwise.training.parallel.graph_alignment import best_path
    from headwise.training.parallel.graph_loss import graph_loss, plain_graph_loss

    vertices, labels = [353, 211, 104, 1], [43, 7, 13, 1]
    links = random_graph(generator, vertices)
    emissions = random_emissions(generator, 4, 353, 43)
    counts = torch.tensor(vertices), torch.tensor(labels)
    exact = [emissions.requires_grad_(), links.requires_grad_()]
    plain_graph_loss(*exact, *counts).sum().backward()
    given = [one.detach().float().cuda().requires_grad_() for one in exact]
    moved = [one.cuda() for one in counts]
    loss = graph_loss(*given, *moved)
    loss.sum().backward()
    expected = plain_graph_loss(*exact, *counts).detach()
    torch.testing.assert_close(loss.cpu().double(), expected, rtol=1e-5, atol=1e-4)
    for found, wanted in zip(given, exact, strict=True):
        assert found.grad is not None
        assert wanted.grad is not None
        torch.testing.assert_close(found.grad.cpu().double(), wanted.grad, rtol=1e-4, atol=1e-4)
    assert torch.equal(best_path(*given, *moved).cpu(), best_path(*exact, *counts))
