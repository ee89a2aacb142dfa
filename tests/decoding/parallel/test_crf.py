"""The best path against enumeration, and its probabilities against those of the loss."""

import itertools

import pytest
import torch
from torch import Tensor

from headwise.decoding.parallel.crf import find_best_path, follow_path
from headwise.text.tokenizer import PAD
from headwise.training.parallel.crf import crf_loss, log_normalizer

PAIRS, WIDTH, COUNT, WORDS = 5, 4, 3, 11


@pytest.fixture
def chain(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    emissions = torch.randn(PAIRS, WIDTH, COUNT, generator=generator, dtype=torch.float64)
    transitions = torch.randn(PAIRS, WIDTH - 1, COUNT, COUNT, generator=generator).double() * 2
    candidates = torch.rand(PAIRS, WIDTH, WORDS, generator=generator).topk(COUNT).indices + 1
    return emissions, transitions, candidates, torch.tensor([4, 1, 3, 2, 4])


def test_no_sequence_is_better(chain: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
    emissions, transitions, candidates, lengths = chain
    found = find_best_path(emissions, transitions, candidates=candidates, lengths=lengths)
    for pair, length in enumerate(lengths.tolist()):
        best: tuple[float, list[int]] = (-float("inf"), [])
        for path in itertools.product(range(COUNT), repeat=length):
            score = sum(float(emissions[pair, t, i]) for t, i in enumerate(path))
            score += sum(
                float(transitions[pair, t, i, j])
                for t, (i, j) in enumerate(itertools.pairwise(path))
            )
            best = max(best, (score, [int(candidates[pair, t, i]) for t, i in enumerate(path)]))
        assert found.score[pair].item() == pytest.approx(best[0], abs=1e-10)
        assert found.tokens[pair].tolist() == best[1] + [PAD] * (WIDTH - length)


def test_what_tokens_add_is_the_score_and_the_probability(
    chain: tuple[Tensor, Tensor, Tensor, Tensor],
) -> None:
    emissions, transitions, candidates, lengths = chain
    found = find_best_path(emissions, transitions, candidates=candidates, lengths=lengths)
    torch.testing.assert_close(found.token_scores.sum(1), found.score)
    gold = (candidates == found.tokens[..., None]).int().argmax(-1)
    loss = crf_loss(emissions, transitions, gold=gold, lengths=lengths)
    torch.testing.assert_close(found.token_log_probabilities.sum(1), -loss)
    assert (found.token_log_probabilities <= 1e-12).all()
    outside = torch.arange(WIDTH) >= lengths[:, None]
    assert (found.token_log_probabilities[outside] == 0).all()
    assert (found.token_scores[outside] == 0).all()


def test_the_first_token_has_its_marginal_probability(
    chain: tuple[Tensor, Tensor, Tensor, Tensor],
) -> None:
    emissions, transitions, candidates, lengths = chain
    emissions.requires_grad_()
    (marginal,) = torch.autograd.grad(
        log_normalizer(emissions, transitions, lengths=lengths).sum(), emissions
    )
    found = find_best_path(emissions.detach(), transitions, candidates=candidates, lengths=lengths)
    first = (candidates[:, 0] == found.tokens[:, :1]).int().argmax(-1)
    torch.testing.assert_close(
        found.token_log_probabilities[:, 0].exp(), marginal[torch.arange(PAIRS), 0, first]
    )


def test_what_stands_after_the_end_makes_no_difference(
    chain: tuple[Tensor, Tensor, Tensor, Tensor],
) -> None:
    emissions, transitions, candidates, lengths = chain
    expected = find_best_path(emissions, transitions, candidates=candidates, lengths=lengths)
    outside = torch.arange(WIDTH) >= lengths[:, None]
    emissions[outside], transitions[outside[:, 1:]] = 1e6, -1e6
    found = find_best_path(emissions, transitions, candidates=candidates, lengths=lengths)
    for name in vars(expected):
        assert torch.equal(getattr(found, name), getattr(expected, name)), name


def test_without_transitions_each_position_decides_alone(generator: torch.Generator) -> None:
    emissions = torch.randn(2, 7, COUNT, generator=generator)
    candidates = torch.arange(COUNT).expand(2, 7, COUNT) + 5
    found = find_best_path(
        emissions,
        torch.zeros(2, 6, COUNT, COUNT),
        candidates=candidates,
        lengths=torch.tensor([7, 7]),
    )
    assert torch.equal(found.tokens, emissions.argmax(-1) + 5)
    torch.testing.assert_close(
        found.token_log_probabilities, emissions.log_softmax(-1).amax(-1), rtol=1e-5, atol=1e-5
    )


def test_the_conditional_probabilities_along_a_path_are_those_of_its_tokens(
    chain: tuple[Tensor, Tensor, Tensor, Tensor],
) -> None:
    emissions, transitions, candidates, lengths = chain
    found = find_best_path(emissions, transitions, candidates=candidates, lengths=lengths)
    path = (candidates == found.tokens[..., None]).int().argmax(-1)
    values = follow_path(emissions, transitions, path=path, lengths=lengths)
    torch.testing.assert_close(values.logsumexp(-1), torch.zeros(PAIRS, WIDTH).double())
    inside = torch.arange(WIDTH) < lengths[:, None]
    along = values.gather(2, path[..., None])[..., 0]
    torch.testing.assert_close(along[inside], found.token_log_probabilities[inside])
