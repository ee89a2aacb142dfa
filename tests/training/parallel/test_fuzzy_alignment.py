"""Fuzzy alignment against counts over all paths one by one."""

import itertools
import math
from collections import Counter

import pytest
import torch
from torch import Tensor

from headwise.training.parallel.fuzzy_alignment import arrivals, fuzzy_alignment
from tests.training.parallel.graphs import paths, random_graph

WORDS = 4


def counted_one_by_one(
    words_at: Tensor, links: Tensor, reference: list[int], order: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Precision, brevity and expected length of one pair without padding."""
    ngrams = Counter(tuple(reference[i : i + order]) for i in range(len(reference) - order + 1))
    counts = dict.fromkeys(ngrams, torch.tensor(0.0).double())
    length, total = torch.tensor(0.0).double(), torch.tensor(0.0).double()
    for walk in paths(len(links)):
        steps = [links[before, after] for before, after in itertools.pairwise(walk)]
        probability = torch.stack([*steps, torch.tensor(0.0).double()]).sum().exp()
        length = length + probability * len(walk)
        total = total + probability * max(len(walk) - order + 1, 0)
        for begin in range(len(walk) - order + 1):
            for ngram in ngrams:
                written = [words_at[walk[begin + i], word] for i, word in enumerate(ngram)]
                counts[ngram] = counts[ngram] + probability * torch.stack(written).prod()
    hits = torch.stack([counts[ngram].clamp_max(count) for ngram, count in ngrams.items()]).sum()
    brevity = torch.exp((1 - len(reference) / length).clamp_max(0))
    return hits / total, brevity, length


@pytest.mark.parametrize("order", [1, 2, 3])
def test_counts_over_all_paths(generator: torch.Generator, order: int) -> None:
    vertices = [7, 6, 3, 5]
    references = [[1, 2, 1, 2, 1], [0, 0, 0], [3, 1, 2, 2, 0, 1], [2, 2, 2, 3]]
    # The expectations hold for links that sum to one; only such changes of them can be compared.
    given = random_graph(generator, vertices)
    allowed = given > -torch.inf
    logits = given.masked_fill(~allowed, -1e30).requires_grad_()
    links = logits.log_softmax(-1).masked_fill(~allowed, -torch.inf)
    words_at = (3 * torch.randn(4, 7, WORDS, generator=generator)).double().softmax(-1)
    labels = torch.zeros(4, 6, dtype=torch.long)
    for pair, reference in enumerate(references):
        labels[pair, : len(reference)] = torch.tensor(reference)
    words_at.requires_grad_()
    emissions = words_at.log().gather(2, labels[:, None].expand(-1, 7, -1))
    lengths = torch.tensor([len(reference) for reference in references])
    found = fuzzy_alignment(emissions, links, labels, torch.tensor(vertices), lengths, order=order)
    losses = []
    for pair, (count, reference) in enumerate(zip(vertices, references, strict=True)):
        precision, brevity, length = counted_one_by_one(
            words_at[pair], links[pair, :count, :count], reference, order
        )
        torch.testing.assert_close(found.precision[pair], precision)
        torch.testing.assert_close(found.brevity[pair], brevity)
        torch.testing.assert_close(found.expected_length[pair], length)
        losses.append(-precision * brevity)
    expected = torch.stack(losses)
    torch.testing.assert_close(found.loss, expected)
    inputs = words_at, logits
    for one, other in zip(
        torch.autograd.grad(found.loss.sum(), inputs, retain_graph=True),
        torch.autograd.grad(expected.sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_a_graph_that_writes_the_reference_scores_one() -> None:
    """A chain of vertices 0, 1, 3 with certain words; vertex 2 is never passed."""
    links = torch.full((1, 4, 4), -torch.inf)
    links[0, 0, 1] = links[0, 1, 3] = links[0, 2, 3] = 0.0
    labels = torch.tensor([[5, 6, 5]])
    emissions = torch.full((1, 4, 3), -torch.inf)
    emissions[0, 0, [0, 2]] = emissions[0, 1, 1] = emissions[0, 3, [0, 2]] = 0.0
    found = fuzzy_alignment(emissions, links, labels, torch.tensor([4]), torch.tensor([3]))
    assert found.loss.item() == pytest.approx(-1)
    assert found.expected_length.item() == pytest.approx(3)
    shorter = fuzzy_alignment(
        torch.nn.functional.pad(emissions, (0, 1), value=-torch.inf),
        links,
        torch.tensor([[5, 6, 5, 7]]),
        torch.tensor([4]),
        torch.tensor([4]),
    )
    assert shorter.brevity.item() == pytest.approx(math.exp(1 - 4 / 3))
    assert shorter.precision.item() == pytest.approx(1)


def test_pairs_without_an_ngram_and_padding(generator: torch.Generator) -> None:
    links = random_graph(generator, [5, 1, 5], width=7).requires_grad_()
    emissions = torch.randn(3, 7, 6, generator=generator).double().log_softmax(-1)
    emissions.requires_grad_()
    labels = torch.randint(0, 3, (3, 6), generator=generator)
    counts = torch.tensor([5, 1, 5]), torch.tensor([4, 4, 1])
    found = fuzzy_alignment(emissions, links, labels, *counts)
    assert found.counted.tolist() == [True, False, False]
    assert found.loss[1:].tolist() == [0, 0]
    for gradient in torch.autograd.grad(found.loss.sum(), (emissions, links)):
        assert gradient.isfinite().all()
        assert gradient[1:].abs().sum() == 0
    narrow = fuzzy_alignment(
        emissions[:1, :5, :4], links[:1, :5, :5], labels[:1, :4], counts[0][:1], counts[1][:1]
    )
    torch.testing.assert_close(narrow.loss[0], found.loss[0])


def test_arrivals_are_a_distribution_at_every_cut(generator: torch.Generator) -> None:
    """A walk passes the last vertex surely, and the first too."""
    counts = torch.tensor([11, 7])
    found = arrivals(random_graph(generator, counts.tolist()).exp(), counts)
    assert found[:, 0].tolist() == [1, 1]
    torch.testing.assert_close(found[[0, 1], counts - 1], torch.ones(2).double())
    assert found[1, 7:].tolist() == [0] * 4


def test_half_precision_around_it_changes_nothing(generator: torch.Generator) -> None:
    counts = torch.tensor([13, 11]), torch.tensor([5, 4])
    links = random_graph(generator, counts[0].tolist()).float().requires_grad_()
    emissions = torch.randn(2, 13, 5, generator=generator).log_softmax(-1)
    labels = torch.randint(0, 3, (2, 5), generator=generator)
    expected = fuzzy_alignment(emissions, links, labels, *counts).loss
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = fuzzy_alignment(emissions, links, labels, *counts).loss
    assert torch.equal(found, expected)
    gradients = [torch.autograd.grad(loss.sum(), links)[0] for loss in (found, expected)]
    assert torch.equal(*gradients)
