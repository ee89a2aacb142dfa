"""Scores hypotheses, with penalties for length and coverage, and decides when a beam search stops.

The log-probability of a hypothesis falls with every token, so a search by log p alone prefers short
outputs. Dividing by a growing function of the length n (tokens generated, end of sentence included)
makes hypotheses of different lengths comparable:

    average    score = log p / n^alpha               alpha = 1: the mean (transformers' default)
    wu         score = log p / ((5 + n) / 6)^alpha   Wu et al. 2016, section 7
    none       score = log p

The coverage penalty of Wu et al. adds beta · Σ_i log min(Σ_t a_{t,i}, 1). It lowers the score of a
hypothesis in which some source token i received less than one unit of attention a over all target
steps t, so that fewer source words are left untranslated.

Stop rules, for a beam of k hypotheses once k have finished:

    likely     stop when the best running hypothesis, scored at its present length, does not beat
               the worst of the k finished ones (transformers' default, `early_stopping=False`)
    filled     stop at once (`early_stopping=True`)
    proven     stop when no running hypothesis could win even at the length with the best score
               (`early_stopping="never"`)

Tested by hand-worked cases and, through the beam search, against transformers' `generate`.
"""

from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor

from headwise.settings import Settings

StopRule = Literal["likely", "filled", "proven"]

COVERAGE_FLOOR = 1e-6
"""Attention is raised to at least this: log 0 would make every score minus infinity."""


class AverageLength(Settings):
    kind: Literal["average"] = "average"
    alpha: float = Field(default=1.0, ge=-10, le=10)
    """0 ignores the length, 1 is the mean, above 1 favours long outputs."""


class WuLength(Settings):
    kind: Literal["wu"] = "wu"
    alpha: float = Field(default=0.6, ge=-10, le=10)


class NoLength(Settings):
    kind: Literal["none"] = "none"


LengthPenalty = Annotated[AverageLength | WuLength | NoLength, Field(discriminator="kind")]


def divisor(penalty: LengthPenalty, length: int | Tensor) -> float | Tensor:
    """The number by which the log-probability of `length` tokens is divided."""
    match penalty:
        case AverageLength(alpha=alpha):
            return length**alpha
        case WuLength(alpha=alpha):
            return ((5 + length) / 6) ** alpha
        case NoLength():
            return 1.0


def penalize(penalty: LengthPenalty, total: Tensor, length: int | Tensor) -> Tensor:
    """The score of hypotheses of these log-probabilities and this many generated tokens."""
    return total if isinstance(penalty, NoLength) else total / divisor(penalty, length)


def favours_length(penalty: LengthPenalty) -> bool:
    """Whether the same total is worth more in a longer hypothesis."""
    return not isinstance(penalty, NoLength) and penalty.alpha > 0


def bound_score(
    penalty: LengthPenalty, total: Tensor, *, length: int | Tensor, limits: Tensor, stop: StopRule
) -> Tensor:
    """The best score a running hypothesis can reach: at its present length, or, for the stop rule
    `proven`, at its best length."""
    return penalize(
        penalty, total, limits if stop == "proven" and favours_length(penalty) else length
    )


def penalize_coverage(
    coverage: Float[Tensor, "hypothesis source"],
    real: Bool[Tensor, "hypothesis source"],
    *,
    beta: float,
) -> Float[Tensor, "hypothesis"]:
    """beta · Σ_i log min(coverage_i, 1) over the real source tokens (`real` is true there)."""
    return beta * (coverage.clamp(COVERAGE_FLOOR, 1.0).log() * real).sum(-1)


def check_stops(
    best_possible: Float[Tensor, "sentence"],
    worst_finished: Float[Tensor, "sentence"],
    *,
    stop: StopRule,
) -> Tensor:
    """Which sentences need no more steps; the worst score is -inf until k have finished."""
    hopeless = ~(best_possible > worst_finished)
    return hopeless | torch.isfinite(worst_finished) if stop == "filled" else hopeless
