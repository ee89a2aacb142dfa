"""Links: the formula as loops, rows that sum to one, small graphs, padding."""

import math

import pytest
import torch
from torch import Tensor

from headwise.errors import UsageError
from headwise.initialization import initialize
from headwise.models.parallel.links import Links, possible_links
from headwise.positions.sinusoidal import sinusoidal_table

DIM, HEADS = 6, 3


def make(generator: torch.Generator) -> Links:
    links = Links(DIM, num_heads=HEADS)
    initialize(links, generator)
    for layer in (links.query, links.key, links.gate):
        layer.bias.data.normal_(generator=generator)
    return links


def written_out(links: Links, hidden: Tensor) -> Tensor:
    """Probabilities of one sentence without padding, vertex by vertex and head by head."""
    count = len(hidden)
    features = torch.cat([hidden, sinusoidal_table(count, DIM)], dim=1)
    q, k = links.query(features), links.key(features)
    gates = links.gate(features).softmax(-1)
    found = torch.zeros(count, count)
    size = DIM // HEADS
    for vertex in range(count - 1):
        for head in range(HEADS):
            own = slice(head * size, (head + 1) * size)
            scores = k[vertex + 1 :, own] @ q[vertex, own] / math.sqrt(size)
            found[vertex, vertex + 1 :] += gates[vertex, head] * scores.softmax(0)
    return found


def test_the_formula_as_loops(generator: torch.Generator) -> None:
    links = make(generator)
    hidden = torch.randn(2, 7, DIM, generator=generator)
    found = links(hidden, torch.tensor([7, 5]))
    torch.testing.assert_close(found[0].exp(), written_out(links, hidden[0]))
    torch.testing.assert_close(found[1, :5, :5].exp(), written_out(links, hidden[1, :5]))


def test_rows_sum_to_one_and_lead_forward_inside_the_sentence(generator: torch.Generator) -> None:
    counts = torch.tensor([1, 2, 11, 7])
    found = make(generator)(torch.randn(4, 11, DIM, generator=generator), counts)
    allowed = possible_links(counts, 11)
    assert torch.equal(found > -torch.inf, allowed)
    expected = (torch.arange(11) < counts[:, None] - 1).float()
    torch.testing.assert_close(found.exp().sum(-1), expected)
    assert found[1, 0, 1].item() == pytest.approx(0, abs=1e-6)


def test_gradients_are_finite_and_padding_gets_none(generator: torch.Generator) -> None:
    links = make(generator)
    hidden = torch.randn(3, 5, DIM, generator=generator, requires_grad=True)
    counts = torch.tensor([1, 5, 3])
    found = links(hidden, counts)
    found[possible_links(counts, 5)].square().sum().backward()
    assert hidden.grad is not None
    assert hidden.grad.isfinite().all()
    assert hidden.grad[1].abs().sum() > 0
    assert hidden.grad[0].abs().sum() == 0  # one vertex has no link
    assert hidden.grad[2, 3:].abs().sum() == 0
    assert all(parameter.grad.isfinite().all() for parameter in links.parameters())


def test_a_mixture_of_probabilities_can_have_two_peaks() -> None:
    """One head points at vertex 1, the other at vertex 3; their mean as logits would not favour
    both over vertex 2, had it the same logit as the losing one in each head."""
    links = Links(4, num_heads=2)
    with torch.no_grad():
        for layer in (links.query, links.key, links.gate):
            layer.weight.zero_()
            layer.bias.zero_()
        links.query.bias.fill_(20.0)
        links.key.weight[0, 0] = links.key.weight[2, 1] = 1.0
    hidden = torch.zeros(1, 5, 4)
    hidden[0, 1, 0] = hidden[0, 3, 1] = 1.0
    found = links(hidden, torch.tensor([5]))[0, 0].exp()
    torch.testing.assert_close(found[[1, 3]], torch.tensor([0.5, 0.5]), atol=1e-4, rtol=0)


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(UsageError, match="4 heads over 6 dimensions"):
        Links(6, num_heads=4)
