"""Decides which drafted (guessed) tokens are accepted: those of greedy search, or others that are
nearly as good.

    exact      d = argmax p                                      the output is that of greedy search
    relaxed    rank of d ≤ top  and  max log p − log p(d) ≤ gap    faster; the output may differ

Exact acceptance is lossless: every token that is written is the verifier's own choice, whatever the
drafter proposes. Relaxed acceptance takes a token of the drafter that is not the best one, so the
output depends on drafter and block, and its quality must be measured again. There is no sampling:
both rules are deterministic.

Stern et al. 2018 (exact and top-k); Xia et al. 2022, SpecDec (rank and gap, their β=5 and τ=3).
Tested on hand-worked tables; relaxed with top 1, or with a gap of 0, is exact.
"""

from typing import Annotated, Literal

from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor

from headwise.settings import Settings


class ExactAcceptance(Settings):
    """A draft must be the verifier's best token: the output is that of greedy search."""

    kind: Literal["exact"] = "exact"

    def allows(
        self,
        scores: Float[Tensor, "row draft vocab"],
        best: Int[Tensor, "row draft"],
        drafts: Int[Tensor, "row draft"],
    ) -> Bool[Tensor, "row draft"]:
        """Whether each draft is good enough; `best` holds the verifier's choices."""
        return best == drafts


class RelaxedAcceptance(Settings):
    """A draft may be any of the best tokens: faster, and not what greedy search writes."""

    kind: Literal["relaxed"] = "relaxed"
    top: int = Field(default=3, ge=1, le=1000)
    """A draft must be among this many best tokens."""
    gap: float = Field(default=1.0, ge=0, le=100)
    """Its log-probability may be this much below the best one's."""

    def allows(
        self,
        scores: Float[Tensor, "row draft vocab"],
        best: Int[Tensor, "row draft"],
        drafts: Int[Tensor, "row draft"],
    ) -> Bool[Tensor, "row draft"]:
        """Whether each draft is good enough; `best` holds the verifier's choices."""
        value, highest = (scores.gather(-1, one[:, :, None]) for one in (drafts, best))
        better = (scores > value).sum(-1)
        return (better < self.top) & (highest - value <= self.gap)[:, :, 0]


AcceptanceSettings = Annotated[ExactAcceptance | RelaxedAcceptance, Field(discriminator="kind")]
