"""Penalties that make hypotheses of different lengths comparable, and the rules for when a beam search may stop.

log p falls with every token, so a plain search prefers short outputs; dividing by a growing function of the length n
(tokens generated, end of sentence included) mends that:

    average    score = log p / n^alpha               alpha = 1: mean log-probability (transformers' `length_penalty`)
    wu         score = log p / ((5 + n) / 6)^alpha   Wu et al. 2016, section 7
    none       score = log p

The coverage penalty of Wu et al. adds beta · Σ_i log min(Σ_t a_{t,i}, 1): source words i that received less than one
unit of attention a over all target steps t cost something, so nothing is left untranslated.

Stop rules, for a beam of k hypotheses once k have finished:

    likely     stop when the best running one, scored at its present length, does not beat the worst of the k finished
               (transformers' default, `early_stopping=False`)
    filled     stop at once (`early_stopping=True`)
    proven     stop when no running one could win even at the length that suits it best (`early_stopping="never"`)

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
"""Attention below this counts as this much: log 0 would make every score minus infinity."""


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


class LengthLimit(Settings):
    """At most factor · (source tokens) + extra tokens, and never more than `limit`."""

    factor: float = Field(default=2.0, ge=0, le=1000)
    extra: int = Field(default=20, ge=0, le=65_536)
    limit: int = Field(default=512, ge=1, le=65_536)

    def for_source(self, num_tokens: int) -> int:
        return max(1, min(self.limit, int(self.factor * num_tokens) + self.extra))


def limit_for(max_length: int | LengthLimit, num_source_tokens: int) -> int:
    """How many tokens (end of sentence included) may be generated for a source of this length."""
    return max_length if isinstance(max_length, int) else max_length.for_source(num_source_tokens)


def cap_limit(max_length: int | LengthLimit, most: int) -> int | LengthLimit:
    """The same limit, and never more than `most` tokens."""
    if isinstance(max_length, int):
        return min(max_length, most)
    return max_length.model_copy(update={"limit": min(max_length.limit, most)})


def divisor(penalty: LengthPenalty, length: int | Tensor) -> float | Tensor:
    """What the total log-probability of so many tokens is divided by."""
    match penalty:
        case AverageLength(alpha=alpha):
            return length**alpha
        case WuLength(alpha=alpha):
            return ((5 + length) / 6) ** alpha
        case NoLength():
            return 1.0


def penalize(penalty: LengthPenalty, total: Tensor, length: int | Tensor) -> Tensor:
    """The score of hypotheses with these total log-probabilities and this many generated tokens."""
    return total if isinstance(penalty, NoLength) else total / divisor(penalty, length)


def favours_length(penalty: LengthPenalty) -> bool:
    """Whether the same total is worth more in a longer hypothesis."""
    return not isinstance(penalty, NoLength) and penalty.alpha > 0


def bound_score(
    penalty: LengthPenalty, total: Tensor, *, length: int | Tensor, limits: Tensor, stop: StopRule
) -> Tensor:
    """The best score a running hypothesis is credited with: at its present length or, to be sure, at its best one."""
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
    """Which sentences need no more steps; the worst finished score is -inf while fewer than k have finished."""
    hopeless = ~(best_possible > worst_finished)
    return hopeless | torch.isfinite(worst_finished) if stop == "filled" else hopeless
