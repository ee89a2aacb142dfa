"""Chooses how a memory counts: neighbours, temperature and weight with the least perplexity.

For each token of a validation text the search gives the distances of the nearest entries and which
of them hold that token. From these tables the perplexity of every combination of a grid is
computed, without asking the model or the store again:

    neighbours    1, 2, 4 … up to the number searched
    temperature   from 1/30 to 30 times the median distance of the nearest entry, by factors of √10
    weight        0 to 0.95 in steps of 0.05, and most · exp(-d₁ / distance)

λ = 0 is in the grid: on the validation text a tuned memory is never worse than the model alone.
Tested against: the grid computed combination by combination through `mix_chosen`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.neighbours.search import FoundNeighbours
from headwise.neighbours.settings import Mixing, NearnessWeight, Weight

MOST_NEIGHBOURS = 64
WEIGHTS = tuple(round(0.05 * number, 2) for number in range(20))
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
FACTORS = tuple(10 ** (number / 2) for number in range(-3, 4))


@dataclass(frozen=True)
class Tuning:
    """What was chosen, and what it gained on the validation text."""

    mixing: Mixing
    alone: float
    """Perplexity per token of the model by itself."""
    mixed: float
    """The same with the memory."""
    predictions: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "mixing": self.mixing.model_dump(mode="json"),
            "perplexity_alone": self.alone,
            "perplexity": self.mixed,
            "predictions": self.predictions,
        }


def tune(
    scores: Float[Tensor, "query"], tokens: Int[Tensor, "query"], found: FoundNeighbours
) -> Tuning:
    """The best of the grid for these tokens, given the model's log-probabilities of them."""
    own = scores.double().cpu()
    distances = found.distances.cpu()
    same = found.tokens.cpu() == tokens.cpu()[:, None]
    nearest = distances[:, 0]
    middle = max(float(nearest.median()), 1e-6)
    alone = -float(own.mean())
    best, least = Mixing(weight=0.0), alone
    for count in _counts(distances.shape[1]):
        for factor in FACTORS:
            temperature = float(f"{factor * middle:.3g}")
            share = (-distances[:, :count] / temperature).softmax(-1)
            remembered = (share * same[:, :count]).sum(1)
            for weight in _weights(nearest):
                loss = _loss(own.exp(), remembered, nearest, weight)
                if loss < least - 1e-12:
                    least = loss
                    best = Mixing(neighbours=count, temperature=temperature, weight=weight)
    return Tuning(best, math.exp(min(alone, 700)), math.exp(min(least, 700)), len(own))


def _counts(most: int) -> Iterator[int]:
    count = 1
    while count < most:
        yield count
        count *= 2
    yield most


def _weights(nearest: Tensor) -> Iterator[Weight]:
    yield from WEIGHTS
    for quantile in QUANTILES:
        distance = float(f"{float(nearest.quantile(quantile)):.3g}")
        for most in WEIGHTS[4::4] if distance > 0 else ():
            yield NearnessWeight(most=most, distance=distance)


def _loss(own: Tensor, remembered: Tensor, nearest: Tensor, weight: Weight) -> float:
    if isinstance(weight, NearnessWeight):
        share = weight.most * (-nearest / weight.distance).exp()
    else:
        share = torch.full_like(nearest, weight)
    return -float((share * remembered + (1 - share) * own).log().mean())
