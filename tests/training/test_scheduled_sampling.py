"""Shares of gold tokens by hand, which tokens may be replaced, and what replaces them."""

import math
from typing import Any

import pytest
import torch

from headwise.text.tokenizer import BOS, PAD
from headwise.training.parallel.token_scores import drawn_tokens, likely_tokens
from headwise.training.sampling_choices import (
    ArgmaxPrediction,
    ExponentialGold,
    InverseSigmoidGold,
    LinearGold,
    SampledPrediction,
)
from headwise.training.scheduled_sampling import InputTokens, draw, gold_share, mix, shift

SHARES: list[tuple[Any, int, float]] = [
    (LinearGold(end=0.2), 1, 1.0),
    (LinearGold(end=0.2), 6, 0.6),
    (LinearGold(end=0.2), 11, 0.2),
    (LinearGold(end=0.2), 99, 0.2),
    (LinearGold(start=0.9, end=0.5, steps=4), 3, 0.7),
    (ExponentialGold(base=0.5), 1, 1.0),
    (ExponentialGold(base=0.5), 4, 0.125),
    (ExponentialGold(base=0.5, floor=0.3), 4, 0.3),
    (InverseSigmoidGold(k=9), 1, 0.9),
    (InverseSigmoidGold(k=10), 11, 10 / (10 + math.e)),
    (InverseSigmoidGold(k=2, floor=0.25), 10**7, 0.25),
]


@pytest.mark.parametrize(("schedule", "step", "share"), SHARES)
def test_shares_by_hand(schedule: Any, step: int, share: float) -> None:
    found = gold_share(schedule, torch.tensor(float(step)), steps=10)
    assert float(found) == pytest.approx(share, rel=1e-6)


def test_before_the_first_update_the_share_is_that_of_the_first() -> None:
    assert float(gold_share(LinearGold(start=0.8), torch.zeros(()), steps=10)) == pytest.approx(0.8)


def test_the_beginning_and_padding_are_never_replaced() -> None:
    tokens = torch.tensor([[BOS, 5, 6, BOS, 7, PAD, PAD]])
    position = torch.tensor([[0, 1, 2, 0, 1, 0, 0]])
    none = draw(tokens, position, share=torch.tensor(0.0), prediction=ArgmaxPrediction())
    assert none.is_gold.tolist() == [[True, False, False, True, False, True, True]]
    assert none.place is None
    every = draw(tokens, position, share=torch.tensor(1.0), prediction=SampledPrediction())
    assert every.is_gold.all()
    assert every.place is not None


def test_coins_fall_as_the_share_says() -> None:
    tokens = torch.full((100, 101), 5)
    position = torch.arange(101).expand(100, 101)
    torch.manual_seed(3)
    is_gold = draw(tokens, position, share=torch.tensor(0.3), prediction=ArgmaxPrediction()).is_gold
    assert is_gold[:, 1:].double().mean().item() == pytest.approx(0.3, abs=0.02)


def test_a_prediction_becomes_the_next_input() -> None:
    predicted = shift(InputTokens(torch.tensor([[[11], [12], [13], [14], [15]]])))
    gold = torch.tensor([[BOS, 5, 6, BOS, 7]])
    is_gold = torch.tensor([[True, False, True, True, False]])
    assert mix(gold, predicted, is_gold).token[..., 0].tolist() == [[BOS, 11, 6, BOS, 14]]


def test_a_gold_token_is_not_mixed() -> None:
    predicted = InputTokens(torch.tensor([[[8, 9]]]), torch.tensor([[[0.7, 0.3]]]))
    found = mix(torch.tensor([[5]]), predicted, torch.tensor([[True]]))
    assert found.weight is not None
    assert found.token[0, 0, 0] == 5
    assert found.weight.tolist() == [[[1.0, 0.0]]]


def test_drawn_tokens_have_the_frequencies_of_the_distribution() -> None:
    weight = torch.tensor([0.5, 0.3, 0.6, 0.1, 0.4, 0.2]).log()[:, None]
    places = (torch.arange(1000) + 0.5) / 1000
    found = drawn_tokens(torch.ones(1000, 1), weight, place=places, excluded=(0, 2), chunk_size=64)
    assert torch.bincount(found, minlength=6).tolist() == [0, 300, 0, 100, 400, 200]
    ends = torch.tensor([0.0, 1 - 2**-24])
    assert drawn_tokens(torch.ones(2, 1), weight, place=ends, excluded=(0, 2)).tolist() == [1, 5]


def test_likely_tokens_in_order_with_probabilities_of_the_whole_vocabulary() -> None:
    weight = torch.tensor([0.4, 0.1, 0.3, 0.2]).log()[:, None]
    found = likely_tokens(torch.ones(3, 1), weight, count=9, excluded=(0,), chunk_size=2)
    assert found.token.tolist() == [[2, 3, 1]] * 3
    torch.testing.assert_close(found.log_probability.exp(), torch.tensor([[0.3, 0.2, 0.1]] * 3))
