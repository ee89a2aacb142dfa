"""The loss of a graph against enumeration, its definition in log space, and total probability."""

import itertools

import pytest
import torch
from torch import Tensor

from headwise.training.parallel import graph_loss as module
from headwise.training.parallel.graph_loss import fits, graph_loss, plain_graph_loss
from headwise.training.parallel.path_sums import possible_cells, sum_paths
from tests.training.parallel.graphs import path_scores, paths, random_emissions, random_graph

VERTICES, LABELS = [7, 6, 5, 2, 1, 4], [4, 2, 3, 2, 1, 4]


def gradients(loss: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    weights = torch.arange(1, len(loss) + 1).to(loss)
    return torch.autograd.grad((loss * weights).sum(), inputs)


def enumerated(emissions: Tensor, links: Tensor) -> Tensor:
    losses = []
    for pair, (vertices, labels) in enumerate(zip(VERTICES, LABELS, strict=True)):
        walks = list(paths(vertices, labels))
        losses.append(-path_scores(emissions[pair], links[pair], walks).logsumexp(0))
    return torch.stack(losses)


def test_loss_and_gradient_of_all_paths_one_by_one(generator: torch.Generator) -> None:
    links = random_graph(generator, VERTICES).requires_grad_()
    emissions = random_emissions(generator, len(VERTICES), 7, 4).requires_grad_()
    expected = enumerated(emissions, links)
    wanted = gradients(expected, emissions, links)
    counts = torch.tensor(VERTICES), torch.tensor(LABELS)
    for form in (graph_loss, plain_graph_loss):
        found = form(emissions, links, *counts)
        torch.testing.assert_close(found, expected)
        for one, other in zip(gradients(found, emissions, links), wanted, strict=True):
            torch.testing.assert_close(one, other)


def test_all_outputs_of_all_lengths_sum_to_one(generator: torch.Generator) -> None:
    vertices, words = 5, 3
    links = random_graph(generator, [vertices])
    words_at = torch.randn(vertices, words, generator=generator).double().log_softmax(-1)
    total = 0.0
    for length in range(1, vertices + 1):
        outputs = torch.tensor(list(itertools.product(range(words), repeat=length)))
        emissions = words_at[:, outputs].transpose(0, 1)  # [output, vertex, label]
        counts = torch.full((len(outputs),), vertices), torch.full((len(outputs),), length)
        loss = graph_loss(emissions, links.expand(len(outputs), -1, -1), *counts)
        total += (-loss).exp()[fits(*counts)].sum().item()
    assert total == pytest.approx(1, abs=1e-12)


def test_padding_changes_nothing(generator: torch.Generator) -> None:
    links = random_graph(generator, [5, 7], width=11)
    emissions = random_emissions(generator, 2, 11, 6)
    counts = torch.tensor([5, 7]), torch.tensor([3, 4])
    wide = [emissions.clone().requires_grad_(), links.clone().requires_grad_()]
    loss = graph_loss(*wide, *counts)
    found = gradients(loss, *wide)
    narrow = [emissions[:, :7, :4].clone().requires_grad_(), links[:, :7, :7].clone()]
    narrow[1].requires_grad_()
    expected = graph_loss(*narrow, *counts)
    torch.testing.assert_close(loss, expected)
    for one, other in zip(found, gradients(expected, *narrow), strict=True):
        inner = tuple(slice(size) for size in other.shape)
        torch.testing.assert_close(one[inner], other)
        assert one.abs().sum() == pytest.approx(other.abs().sum().item())
    emissions[0, 5:], emissions[0, :, 3:] = torch.nan, torch.nan  # never read
    torch.testing.assert_close(graph_loss(emissions, links, *counts)[0], loss[0].detach())


def test_a_sentence_without_a_path_has_neither_loss_nor_gradient(
    generator: torch.Generator,
) -> None:
    counts = torch.tensor([3, 3, 1, 2]), torch.tensor([4, 1, 2, 2])
    assert fits(*counts).tolist() == [False, False, False, True]
    links = random_graph(generator, counts[0].tolist()).requires_grad_()
    emissions = random_emissions(generator, 4, 3, 4).requires_grad_()
    for form in (graph_loss, plain_graph_loss):
        loss = form(emissions, links, *counts)
        assert loss[:3].tolist() == [0, 0, 0]
        for gradient in gradients(loss, emissions, links):
            assert gradient.isfinite().all()
            assert gradient[:3].abs().sum() == 0
            assert gradient[3].abs().sum() > 0


def test_an_impossible_label_costs_infinity_and_has_no_gradient(
    generator: torch.Generator,
) -> None:
    links = random_graph(generator, [5, 5]).requires_grad_()
    emissions = random_emissions(generator, 2, 5, 3)
    emissions[0, :, 1] = -torch.inf
    emissions.requires_grad_()
    counts = torch.tensor([5, 5]), torch.tensor([3, 3])
    loss = graph_loss(emissions, links, *counts)
    assert loss.isinf().tolist() == [True, False]
    for gradient in torch.autograd.grad(loss[1], (emissions, links)):
        assert gradient.isfinite().all()
        assert gradient[0].abs().sum() == 0


@pytest.mark.parametrize("spread", [1.0, 30.0])
def test_fp32_as_the_definition(generator: torch.Generator, spread: float) -> None:
    """Long graphs in fp32 against the definition in fp64: 1e-4 relative, gradients included."""
    vertices, labels = [101, 97, 53, 41], [13, 37, 29, 41]
    links = random_graph(generator, vertices, spread=spread)
    emissions = spread * random_emissions(generator, 4, 101, 41)
    counts = torch.tensor(vertices), torch.tensor(labels)
    exact = [emissions.requires_grad_(), links.requires_grad_()]
    expected = plain_graph_loss(*exact, *counts)
    short = [one.detach().float().requires_grad_() for one in exact]
    found = graph_loss(*short, *counts)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), expected, rtol=1e-6, atol=1e-6)
    # The inputs are rounded to fp32: 24 bits of logarithms of up to a few hundred.
    for one, other in zip(gradients(found, *short), gradients(expected, *exact), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=2e-5 * spread)


def trap(depth: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The best prefix leads to vertex 1, whose only good link skips to the end too early: all
    complete paths are `depth` nats worse than it at label 1."""
    links = torch.full((1, 6, 6), -torch.inf, dtype=torch.double)
    links[0, 0, 1], links[0, 0, 2], links[0, 2, 3] = 0.0, -depth, -1.0
    links[0, 1, 5] = links[0, 3, 4] = links[0, 4, 5] = 0.0
    links[0, 1, 4] = -3 * depth
    emissions = torch.full((1, 6, 5), -2.0, dtype=torch.double)
    return emissions, links, torch.tensor([6]), torch.tensor([5])


@pytest.mark.parametrize("depth", [50.0, 300.0, 400.0, 3000.0])
def test_underflow_is_noticed(depth: float, monkeypatch: pytest.MonkeyPatch) -> None:
    emissions, links, *counts = trap(depth)
    found = sum_paths(emissions, links, *counts, gradients=True)
    assert found.certain.item() == (depth < 345)
    emissions.requires_grad_()
    links.requires_grad_()
    loss = graph_loss(emissions, links, *counts)
    assert loss.item() == pytest.approx(depth + 1 + 10)
    for one, other in zip(
        gradients(loss, emissions, links),
        gradients(plain_graph_loss(emissions, links, *counts), emissions, links),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_ordinary_pairs_need_no_second_computation(
    generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("computed in log space")

    monkeypatch.setattr(module, "_sum_in_log_space", refuse)
    vertices, labels = [89, 61], [11, 61]
    links = random_graph(generator, vertices, spread=5).requires_grad_()
    emissions = random_emissions(generator, 2, 89, 61).requires_grad_()
    graph_loss(emissions, links, torch.tensor(vertices), torch.tensor(labels)).sum().backward()


def test_posteriors_are_probabilities(generator: torch.Generator) -> None:
    vertices, labels = torch.tensor([17, 13]), torch.tensor([5, 7])
    links, emissions = random_graph(generator, [17, 13]), random_emissions(generator, 2, 17, 7)
    found = sum_paths(emissions, links, vertices, labels, gradients=True)
    assert found.by_emission is not None
    assert found.by_link is not None
    torch.testing.assert_close(
        found.by_emission.sum(1), (torch.arange(7) < labels[:, None]).double()
    )
    # A path of M labels uses M - 1 links; what enters a vertex is what is emitted there.
    torch.testing.assert_close(found.by_link.sum((1, 2)), (labels - 1).double())
    torch.testing.assert_close(found.by_link.sum(1)[:, 1:], found.by_emission.sum(2)[:, 1:])


def test_gradcheck(generator: torch.Generator) -> None:
    counts = torch.tensor([4, 3]), torch.tensor([3, 2])
    links = random_graph(generator, [4, 3])
    allowed = links > -torch.inf
    given = links[allowed].requires_grad_()
    emissions = random_emissions(generator, 2, 4, 3).requires_grad_()

    def loss(emissions: Tensor, given: Tensor) -> Tensor:
        table = torch.full_like(links, -torch.inf).masked_scatter(allowed, given)
        return graph_loss(emissions, table, *counts)

    assert torch.autograd.gradcheck(loss, (emissions, given))


def test_possible_cells_by_enumeration() -> None:
    vertices, labels = [6, 5, 1, 4, 6], [3, 5, 1, 0, 2]
    found = possible_cells(
        torch.tensor(vertices), torch.tensor(labels), num_vertices=6, num_labels=5
    )
    expected = torch.zeros(5, 5, 6, dtype=torch.bool)
    for pair, (count, length) in enumerate(zip(vertices, labels, strict=True)):
        for walk in paths(count, length) if length else []:
            for label, vertex in enumerate(walk):
                expected[label, pair, vertex] = True
    assert torch.equal(found, expected)


def test_half_precision_around_it_changes_nothing(generator: torch.Generator) -> None:
    counts = torch.tensor([13, 11]), torch.tensor([5, 4])
    links = random_graph(generator, counts[0].tolist()).float().requires_grad_()
    emissions = random_emissions(generator, 2, 13, 5).float().requires_grad_()
    expected = graph_loss(emissions, links, *counts)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = graph_loss(emissions, links, *counts)
    assert torch.equal(found, expected)
    for one, other in zip(
        gradients(found, emissions, links), gradients(expected, emissions, links), strict=True
    ):
        assert torch.equal(one, other)
