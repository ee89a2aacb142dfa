"""n-grams under CTC against counts over all alignments one by one."""

import itertools
from collections import Counter

import pytest
import torch
from torch import Tensor

from headwise.decoding.parallel.ctc import collapse
from headwise.training.parallel.ctc_ngrams import NgramMatch, match_ngrams
from headwise.training.parallel.token_scores import repeats

WORDS = 4
"""The blank and three words."""


def counted_one_by_one(
    probabilities: Tensor, reference: list[int], order: int
) -> tuple[Tensor, Tensor]:
    """F1 and expected length of one pair without padding."""
    ngrams = Counter(tuple(reference[i : i + order]) for i in range(len(reference) - order + 1))
    counts = dict.fromkeys(ngrams, torch.tensor(0.0).double())
    length, total = torch.tensor(0.0).double(), torch.tensor(0.0).double()
    for alignment in itertools.product(range(WORDS), repeat=len(probabilities)):
        probability = probabilities[range(len(alignment)), list(alignment)].prod()
        written = collapse(alignment)
        found = Counter(written[i : i + order] for i in range(len(written) - order + 1))
        length = length + probability * len(written)
        total = total + probability * found.total()
        for ngram in ngrams:
            counts[ngram] = counts[ngram] + probability * found[ngram]
    hits = torch.stack([counts[ngram].clamp_max(count) for ngram, count in ngrams.items()]).sum()
    return 2 * hits / (total + ngrams.total()), length


def match(probabilities: Tensor, references: list[list[int]], counts: list[int], order: int):
    labels = torch.zeros(len(references), max(map(len, references)), dtype=torch.long)
    for pair, reference in enumerate(references):
        labels[pair, : len(reference)] = torch.tensor(reference)
    columns = torch.cat([torch.zeros_like(labels[:, :1]), labels], dim=1)
    scores = probabilities.log().gather(2, columns[:, None].expand(-1, probabilities.shape[1], -1))
    overlap = (probabilities[:, 1:, 1:] * probabilities[:, :-1, 1:]).sum(-1)
    return match_ngrams(
        scores,
        overlap,
        labels,
        position_count=torch.tensor(counts),
        label_count=torch.tensor([len(reference) for reference in references]),
        order=order,
    )


@pytest.mark.parametrize("order", [1, 2])
def test_counts_over_all_alignments(generator: torch.Generator, order: int) -> None:
    counts = [6, 4, 5, 2]
    references = [[1, 2, 1, 2, 1], [3, 3, 3], [1, 2, 2, 2, 3, 1], [2, 2]]
    logits = 2 * torch.randn(4, 6, WORDS, generator=generator).double()
    logits.requires_grad_()
    probabilities = logits.softmax(-1)
    found: NgramMatch = match(probabilities, references, counts, order)
    losses = []
    for pair, (count, reference) in enumerate(zip(counts, references, strict=True)):
        f1, length = counted_one_by_one(probabilities[pair, :count], reference, order)
        torch.testing.assert_close(found.expected_length[pair], length)
        losses.append(-f1)
    expected = torch.stack(losses)
    torch.testing.assert_close(found.loss, expected)
    (ours,) = torch.autograd.grad(found.loss.sum(), logits, retain_graph=True)
    (theirs,) = torch.autograd.grad(expected.sum(), logits)
    torch.testing.assert_close(ours, theirs)


def test_positions_that_write_the_reference_score_one() -> None:
    """a ∅ a b b, certain up to rounding: a a b."""
    written = torch.tensor([[1, 0, 1, 2, 2]])
    probabilities = torch.nn.functional.one_hot(written, WORDS).double().clamp_min(1e-30)
    found: NgramMatch = match(probabilities, [[1, 1, 2]], [5], 2)
    assert found.loss.item() == pytest.approx(-1)
    assert found.expected_length.item() == pytest.approx(3)
    other: NgramMatch = match(probabilities, [[2, 1, 1]], [5], 2)
    assert other.loss.item() == pytest.approx(-0.5)


def test_pairs_without_an_ngram_learn_nothing(generator: torch.Generator) -> None:
    logits = torch.randn(3, 5, WORDS, generator=generator).double().requires_grad_()
    found: NgramMatch = match(logits.softmax(-1), [[1, 2], [2], [1, 2]], [5, 5, 1], 2)
    assert found.counted.tolist() == [True, False, False]
    assert found.loss[1:].tolist() == [0, 0]
    (gradient,) = torch.autograd.grad(found.loss.sum(), logits)
    assert gradient.isfinite().all()
    assert gradient[1:].abs().sum() == 0


@pytest.mark.parametrize("chunk_size", [None, 7, 16])
def test_repeats_are_products_of_neighbours(
    generator: torch.Generator, chunk_size: int | None
) -> None:
    hidden = torch.randn(3, 7, 5, generator=generator).requires_grad_()
    weight = torch.randn(11, 5, generator=generator).requires_grad_()
    bias = torch.randn(11, generator=generator)
    probability = (hidden @ weight.T + bias).softmax(-1)
    expected = (probability[:, 1:, 1:] * probability[:, :-1, 1:]).sum(-1)
    found = repeats(hidden, weight, bias=bias, chunk_size=chunk_size)
    torch.testing.assert_close(found, expected)
    factors = torch.randn(expected.shape, generator=generator)
    inputs = hidden, weight
    for one, other in zip(
        torch.autograd.grad((found * factors).sum(), inputs),
        torch.autograd.grad((expected * factors).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
