"""Lets several models translate together: an ensemble, one stepper made of the steppers of each.

Every model computes its distribution over the next token, and the search sees their mean:

    probabilities    p(w) = (p₁(w) + … + pₙ(w)) / n
    logarithms       p(w) ∝ (p₁(w) · … · pₙ(w))^(1 / n)

The models make different mistakes, and the mean has fewer of them (Hansen & Salamon 1990; for
translation Sutskever et al. 2014). The first mean keeps a token that one model is sure of; the
second one wants no model to rule it out. Each step costs as much as the steps of all models.

Whatever searches over a stepper can use it: greedy search, beam search, sampling.
Tested against: one model repeated, the mean worked out by hand, exhaustive enumeration.
"""

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.decoding.stepper import AttendingStepper, Stepper, capabilities_of
from headwise.decoding.stepper_search import Steppers

Mean = Literal["probabilities", "logarithms"]
States = tuple[Any, ...]


class EnsembleStepper:
    """The steppers of several models with the same vocabularies, as one."""

    def __init__(self, members: Sequence[Stepper[Any]], *, mean: Mean = "probabilities") -> None:
        self.members, self.mean = members, mean
        self.shows_attention = all(capabilities_of(one).shows_attention for one in members)

    @property
    def device(self) -> torch.device:
        return self.members[0].device

    def start(self, sources: Sequence[Sequence[int]], *, width: int, max_length: int) -> States:
        return tuple(one.start(sources, width=width, max_length=max_length) for one in self.members)

    def step(
        self, state: States, tokens: Int[Tensor, " hypothesis"]
    ) -> tuple[Float[Tensor, "hypothesis vocab"], States]:
        stepped = [one.step(own, tokens) for one, own in zip(self.members, state, strict=True)]
        found = mean_of([scores for scores, _ in stepped], self.mean)
        return found, tuple(own for _, own in stepped)

    def reorder(self, state: States, index: Int[Tensor, " new_hypothesis"]) -> States:
        return tuple(one.reorder(own, index) for one, own in zip(self.members, state, strict=True))

    def attention(self, state: States) -> Float[Tensor, "hypothesis source"]:
        """The mean attention of the last step to the source; all members must show theirs."""
        members = [cast("AttendingStepper", one) for one in self.members]
        shown = [one.attention(own) for one, own in zip(members, state, strict=True)]
        return torch.stack(shown).mean(0)


def mean_of(
    scores: Sequence[Float[Tensor, "hypothesis vocab"]], mean: Mean
) -> Float[Tensor, "hypothesis vocab"]:
    """The logarithm of the mean distribution, from the log-probabilities of each model."""
    if mean == "probabilities":
        return reduce(torch.logaddexp, scores) - math.log(len(scores))
    return (reduce(torch.add, scores) / len(scores)).log_softmax(-1)


class EnsembleSteppers:
    """What several models offer to searches together: one token after the other."""

    output_form = "steps"
    """What they give to a search (decoding/choices.py)."""

    def __init__(self, members: Sequence[Steppers], *, mean: Mean = "probabilities") -> None:
        self._members, self._mean = members, mean

    def stepper(self, *, attending: bool) -> EnsembleStepper:
        members = [one.stepper(attending=attending) for one in self._members]
        return EnsembleStepper(members, mean=self._mean)
