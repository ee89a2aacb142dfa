"""Replaces tokens that a decoder reads by its own predictions: scheduled sampling.

With teacher forcing the decoder reads the right token before each position. In a search it reads
what it wrote itself, and it has never learnt to go on after a mistake (exposure bias). Scheduled
sampling mixes the two: with ŷ the model's prediction at a position, in update i the decoder reads

    <s>                         at position 0
    y_t     if u_t < share(i)   at position t: the gold token (that of the reference)
    ŷ_t     otherwise           u_t uniform in [0, 1)

The share of gold tokens falls with the number i of updates made before:

    linear            start + (end - start) · min(i / steps, 1)
    exponential       max(base^i, floor)
    inverse_sigmoid   max(k / (k + exp(i / k)), floor)

The prediction is the most probable token (`argmax`), one drawn from the distribution (`sampled`),
or the mean of the embeddings of the k most probable ones, weighted by their probabilities
(`top_k`). Padding, `<s>` and `</s>` are not predicted: the sentence goes on, as in a search that
may not end yet. No gradient flows through a prediction. A choice of tokens has none, and the
weights of a mixture are treated alike, so that a first pass need not be kept for a backward pass.

Each position draws one number for the choice gold or predicted and, with `sampled`, a second one,
which picks the token from the cumulative distribution. The numbers do not depend on the tokens.
Therefore several passes with the same numbers end with the inputs that step-by-step prediction
gives.

Bengio et al. 2015, *Scheduled Sampling for Sequence Prediction with Recurrent Neural Networks*;
Mihaylova & Martins 2019, *Scheduled Sampling for Transformers*; Duckworth et al. 2019, *Parallel
Scheduled Sampling*. Tested against: shares worked by hand; the frequencies of drawn tokens;
teacher forcing at share 1 and predictions of single unpacked sentences at share 0.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headwise.text.tokenizer import BOS, EOS, PAD
from headwise.training.parallel.token_scores import best_tokens, drawn_tokens, likely_tokens
from headwise.training.sampling_choices import (
    ArgmaxPrediction,
    ExponentialGold,
    GoldSchedule,
    InverseSigmoidGold,
    LinearGold,
    Prediction,
    SampledPrediction,
    TopKPrediction,
)

NEVER_READ = (PAD, BOS, EOS)
"""Tokens that a decoder reads in no search after the first position."""


class InputTokens(NamedTuple):
    """What a decoder reads: one token for each position, or a mixture of several."""

    token: Int[Tensor, "row time choice"]
    weight: Float[Tensor, "row time choice"] | None = None
    """The weights of a mixture, whose sum is 1; None: one token."""


class Draws(NamedTuple):
    """The random numbers of a batch."""

    is_gold: Bool[Tensor, "row time"]
    """Where the decoder reads the token of the reference."""
    place: Float[Tensor, "row time"] | None
    """Which part of the cumulative distribution is taken, for drawn tokens."""


def gold_share(schedule: GoldSchedule, step: Float[Tensor, ""], *, steps: int) -> Float[Tensor, ""]:
    """The share of gold tokens in update number `step` (from 1) of a training of `steps`."""
    made = (step - 1).clamp(min=0)
    match schedule:
        case LinearGold(start=start, end=end, steps=own):
            return start + (end - start) * (made / (own or steps)).clamp(max=1)
        case ExponentialGold(base=base, floor=floor):
            return (made * math.log(base)).exp().clamp(min=floor)
        case InverseSigmoidGold(k=k, floor=floor):
            # k / (k + exp(i / k)) = σ(log k - i / k), which cannot overflow
            return torch.sigmoid(math.log(k) - made / k).clamp(min=floor)


def draw(
    tokens: Int[Tensor, "row time"],
    position: Int[Tensor, "row time"],
    *,
    share: Float[Tensor, ""],
    prediction: Prediction,
) -> Draws:
    """Draw where gold tokens are read: always at the beginning of a sentence and in padding."""
    coins = torch.rand(tokens.shape, device=tokens.device)
    is_gold = (coins < share) | (position == 0) | (tokens == PAD)
    if not isinstance(prediction, SampledPrediction):
        return Draws(is_gold, None)
    return Draws(is_gold, torch.rand(tokens.shape, device=tokens.device))


@torch.no_grad()
def predict(
    hidden: Float[Tensor, "row time dim"],
    weight: Float[Tensor, "vocab dim"],
    *,
    bias: Float[Tensor, " vocab"] | None,
    prediction: Prediction,
    place: Float[Tensor, "row time"] | None,
) -> InputTokens:
    """The predicted inputs of the positions after those of the hidden states; `place` is that of
    the predicted positions.
    """
    states = hidden.flatten(0, 1)
    shape = (*hidden.shape[:2], -1)
    match prediction:
        case ArgmaxPrediction():
            found = best_tokens(states, weight, bias=bias, excluded=NEVER_READ)
            return InputTokens(found.token.view(shape))
        case SampledPrediction():
            assert place is not None
            chosen = drawn_tokens(
                states, weight, bias=bias, place=place.flatten(), excluded=NEVER_READ
            )
            return InputTokens(chosen.view(shape))
        case TopKPrediction(k=k):
            likely = likely_tokens(states, weight, bias=bias, count=k, excluded=NEVER_READ)
            weights = likely.log_probability.softmax(-1)
            return InputTokens(likely.token.view(shape), weights.view(shape))


def mix(
    gold: Int[Tensor, "row time"], predicted: InputTokens, is_gold: Bool[Tensor, "row time"]
) -> InputTokens:
    """The gold token where it is read, and the prediction elsewhere."""
    keeps = is_gold[..., None]
    token = torch.where(keeps, gold[..., None], predicted.token)
    if predicted.weight is None:
        return InputTokens(token)
    alone = torch.zeros_like(predicted.weight)
    alone[..., 0] = 1
    return InputTokens(token, torch.where(keeps, alone, predicted.weight))


def shift(predicted: InputTokens) -> InputTokens:
    """What was predicted at a position as the input of the next one; padding at the first."""
    token, weight = predicted
    first = torch.full_like(token[:, :1], PAD)
    moved = torch.cat([first, token[:, :-1]], 1)
    if weight is None:
        return InputTokens(moved)
    return InputTokens(moved, torch.cat([torch.zeros_like(weight[:, :1]), weight[:, :-1]], 1))
