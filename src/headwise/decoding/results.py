"""What a search gives back: hypotheses with their probabilities and, if asked, the whole tree it looked at.

A hypothesis with tokens y_1 … y_n and the end-of-sentence token y_{n+1} has

    log p(y | x) = Σ_t log p(y_t | y_<t, x)      summed over the n + 1 generated tokens,

and a score, which is what hypotheses are ordered by: log p after the length and coverage penalties of `length.py`.
Tested through every search, by recomputing both numbers from the per-token log-probabilities.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Hypothesis:
    """One output of a search; `tokens` holds neither the beginning nor the end of the sentence."""

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    token_log_probabilities: tuple[float, ...]
    """One number per generated token; if finished, the last one belongs to the end of the sentence."""
    finished: bool
    """True if the end of the sentence was generated, False if the length limit cut the hypothesis."""


@dataclass(frozen=True)
class Candidate:
    """One continuation a beam search weighed at one step: an edge of the search tree."""

    parent: int
    """Slot of the beam (at the step before) this candidate continues."""
    token: int
    log_probability: float
    """Of this token alone."""
    total: float
    """Of the whole hypothesis so far."""
    score: float
    """The total after the length and coverage penalties, as if the hypothesis ended here."""
    fate: Literal["kept", "pruned", "finished"]
    slot: int | None
    """Slot of the beam it takes in the next step, if kept."""


@dataclass(frozen=True)
class SearchTrace:
    """The tree of a beam search: for every step the candidates in order of their totals, best first."""

    steps: tuple[tuple[Candidate, ...], ...]


@dataclass(frozen=True)
class SearchResult:
    """All hypotheses of one sentence: best first for beam search, in the order drawn for sampling."""

    hypotheses: tuple[Hypothesis, ...]
    trace: SearchTrace | None = None

    @property
    def best(self) -> Hypothesis:
        return self.hypotheses[0]


Tell = Callable[[int, SearchResult], None]
"""Is told the number and the result of sentences that are done while others go on; all results are returned in the end as well."""

EMPTY_RESULT = SearchResult((Hypothesis((), 0.0, 0.0, (), finished=True),))
"""What an empty source gives: an empty line stays an empty line and no model is asked."""
