"""The CRF loss: all sequences enumerated, a full-vocabulary recursion, gradients, and padding."""

import itertools

import pytest
import torch
from torch import Tensor

from headwise.training.parallel.crf import crf_loss, log_normalizer, score_paths

PAIRS, WIDTH, WORDS = 3, 4, 6


def draw(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def enumerate_scores(emissions: Tensor, transitions: Tensor, length: int) -> list[float]:
    """The score of every sequence of one pair, token by token."""
    scores = []
    for path in itertools.product(range(emissions.shape[1]), repeat=length):
        score = sum(float(emissions[t, token]) for t, token in enumerate(path))
        score += sum(
            float(transitions[t, a, b]) for t, (a, b) in enumerate(itertools.pairwise(path))
        )
        scores.append(score)
    return scores


def test_the_loss_is_that_of_all_sequences_enumerated(generator: torch.Generator) -> None:
    emissions = draw(generator, PAIRS, WIDTH, WORDS)
    transitions = draw(generator, PAIRS, WIDTH - 1, WORDS, WORDS)
    gold = torch.randint(WORDS, (PAIRS, WIDTH), generator=generator)
    lengths = torch.tensor([4, 1, 3])
    loss = crf_loss(emissions, transitions, gold=gold, lengths=lengths)
    for pair, length in enumerate(lengths.tolist()):
        scores = enumerate_scores(emissions[pair], transitions[pair], length)
        place = 0
        for token in gold[pair, :length].tolist():
            place = place * WORDS + token
        expected = torch.tensor(scores).double().logsumexp(0) - scores[place]
        assert loss[pair].item() == pytest.approx(expected.item(), abs=1e-5)
    probabilities = [
        score_paths(emissions[:1], transitions[:1], path=torch.tensor([path]), lengths=lengths[:1])
        - log_normalizer(emissions[:1], transitions[:1], lengths=lengths[:1])
        for path in itertools.product(range(WORDS), repeat=WIDTH)
    ]
    assert torch.cat(probabilities).exp().sum().item() == pytest.approx(1, abs=1e-12)


def test_candidates_approach_the_whole_vocabulary_from_below(generator: torch.Generator) -> None:
    words, width = 11, 7
    emissions, table = draw(generator, 1, width, words), draw(generator, words, words)
    length = torch.tensor([width])
    # The textbook recursion over the vocabulary, in probabilities instead of logarithms.
    alpha = emissions[0, 0].exp()
    for step in range(1, width):
        alpha = alpha @ table.exp() * emissions[0, step].exp()
    previous = -float("inf")
    for count in range(1, words + 1):
        chosen = emissions.topk(count, dim=-1).indices
        scores = table[chosen[:, :-1, :, None], chosen[:, 1:, None, :]]
        total = log_normalizer(emissions.gather(2, chosen), scores, lengths=length).item()
        assert previous < total <= alpha.sum().log().item() + 1e-9
        previous = total
    assert previous == pytest.approx(alpha.sum().log().item(), abs=1e-10)


def test_gradients_are_those_of_differences_and_of_autograd(generator: torch.Generator) -> None:
    emissions = draw(generator, PAIRS, WIDTH, 3).requires_grad_()
    transitions = draw(generator, PAIRS, WIDTH - 1, 3, 3).requires_grad_()
    gold = torch.randint(3, (PAIRS, WIDTH), generator=generator)
    lengths = torch.tensor([4, 2, 0])

    def loss(emissions: Tensor, transitions: Tensor) -> Tensor:
        return crf_loss(emissions, transitions, gold=gold, lengths=lengths)

    assert torch.autograd.gradcheck(loss, (emissions, transitions))
    paths = torch.tensor(list(itertools.product(range(3), repeat=WIDTH)))
    scores = score_paths(
        emissions[:1].expand(len(paths), -1, -1),
        transitions[:1].expand(len(paths), -1, -1, -1),
        path=paths,
        lengths=torch.full((len(paths),), WIDTH),
    )
    wanted = torch.autograd.grad(scores.logsumexp(0), (emissions, transitions))
    total = log_normalizer(emissions, transitions, lengths=lengths)[0]
    for found, expected in zip(
        torch.autograd.grad(total, (emissions, transitions)), wanted, strict=True
    ):
        torch.testing.assert_close(found, expected)


def test_emission_gradients_are_probabilities(generator: torch.Generator) -> None:
    emissions = draw(generator, PAIRS, WIDTH, WORDS).requires_grad_()
    transitions = draw(generator, PAIRS, WIDTH - 1, WORDS, WORDS).requires_grad_()
    lengths = torch.tensor([4, 1, 2])
    log_normalizer(emissions, transitions, lengths=lengths).sum().backward()
    inside = torch.arange(WIDTH) < lengths[:, None]
    assert emissions.grad is not None
    assert transitions.grad is not None
    torch.testing.assert_close(emissions.grad.sum(-1), inside.double())
    # Summed over the candidate before, two neighbours become the probability of the one after.
    torch.testing.assert_close(transitions.grad.sum(2), emissions.grad[:, 1:] * inside[:, 1:, None])


@pytest.mark.parametrize("padding", [0.0, 1e4, -1e4, float("nan")])
def test_padding_changes_nothing(generator: torch.Generator, padding: float) -> None:
    lengths = torch.tensor([5, 2])
    emissions, transitions = draw(generator, 2, 5, WORDS), draw(generator, 2, 4, WORDS, WORDS)
    gold = torch.randint(WORDS, (2, 5), generator=generator)
    alone = [
        crf_loss(
            emissions[pair : pair + 1, :length],
            transitions[pair : pair + 1, : length - 1],
            gold=gold[pair : pair + 1, :length],
            lengths=lengths[pair : pair + 1],
        )
        for pair, length in enumerate(lengths.tolist())
    ]
    emissions[1, 2:], transitions[1, 1:] = padding, padding
    emissions.requires_grad_()
    together = crf_loss(emissions, transitions, gold=gold, lengths=lengths)
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-12, atol=0)
    (gradient,) = torch.autograd.grad(together.sum(), emissions)
    assert (gradient[1, 2:] == 0).all()


def test_half_precision_is_summed_in_single(generator: torch.Generator) -> None:
    emissions = draw(generator, 2, 97, 5).bfloat16()
    transitions = draw(generator, 2, 96, 5, 5).bfloat16()
    lengths = torch.tensor([97, 89])
    total = log_normalizer(emissions, transitions, lengths=lengths)
    exact = log_normalizer(emissions.double(), transitions.double(), lengths=lengths)
    assert total.dtype == torch.float32
    # 97 sums that are each off by a few units of 2^-24, relative to a total of some hundred.
    torch.testing.assert_close(total.double(), exact, rtol=1e-5, atol=0)


def test_a_constant_of_a_position_makes_no_difference(generator: torch.Generator) -> None:
    emissions = draw(generator, PAIRS, WIDTH, WORDS)
    transitions = draw(generator, PAIRS, WIDTH - 1, WORDS, WORDS)
    gold, lengths = torch.zeros(PAIRS, WIDTH, dtype=torch.long), torch.tensor([4, 3, 2])
    shift = draw(generator, PAIRS, WIDTH, 1)
    torch.testing.assert_close(
        crf_loss(emissions + shift, transitions, gold=gold, lengths=lengths),
        crf_loss(emissions, transitions, gold=gold, lengths=lengths),
    )


def test_without_transitions_it_is_the_cross_entropy_of_each_token(
    generator: torch.Generator,
) -> None:
    emissions = draw(generator, PAIRS, WIDTH, WORDS)
    gold = torch.randint(WORDS, (PAIRS, WIDTH), generator=generator)
    loss = crf_loss(
        emissions,
        torch.zeros(PAIRS, WIDTH - 1, WORDS, WORDS),
        gold=gold,
        lengths=torch.full((PAIRS,), WIDTH),
    )
    tokens = -emissions.log_softmax(-1).gather(2, gold[..., None])[..., 0]
    torch.testing.assert_close(loss, tokens.sum(1))
