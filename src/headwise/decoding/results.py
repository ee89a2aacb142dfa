"""The result of generation: hypotheses with their probabilities, and on request what led to them:
the steps of a search, or the passes of a decoder that writes all positions at once.

A hypothesis with tokens y_1 … y_n and the end-of-sentence token y_{n+1} has

    log p(y | x) = Σ_t log p(y_t | y_<t, x)      summed over the n + 1 generated tokens,

and a score by which hypotheses are ordered: log p after the length and coverage penalties
(`search/length_penalty.py`).
Tested through every search, by recomputing both numbers from the per-token log-probabilities.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from headwise.decoding.records import Record
from headwise.text.tokenizer import EOS


@dataclass(frozen=True)
class Hypothesis:
    """One output; `tokens` holds neither the beginning nor the end of the sentence."""

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    token_log_probabilities: tuple[float, ...]
    """One number per generated token; if finished, the last one is that of the end of sentence."""
    finished: bool
    """True if the end of the sentence was generated, False if the length limit cut it off."""

    @staticmethod
    def of_path(tokens: Sequence[int], values: Sequence[float]) -> "Hypothesis":
        """What greedy search wrote, with the log-probability of each token; scored by its mean."""
        finished, total = tokens[-1] == EOS, sum(values)
        written = tuple(tokens[:-1] if finished else tokens)
        return Hypothesis(written, total, total / len(values), tuple(values), finished)


@dataclass(frozen=True)
class PathTables:
    """The paths of a batch, each up to its end of sentence or its limit."""

    tokens: Int[np.ndarray, "sentence row step"]
    values: Float[np.ndarray, "sentence row step"]
    """Log-probabilities of the tokens; 0 behind the end."""
    length: Int[np.ndarray, "sentence row"]
    """Tokens of each path, the end of its sentence included."""
    finished: Bool[np.ndarray, "sentence row"]
    """Whether it has an end, and was not cut off."""

    @staticmethod
    def of(
        tokens: Int[np.ndarray, "step sentence row"],
        values: Float[np.ndarray, "step sentence row"],
        *,
        limits: Sequence[int],
    ) -> "PathTables":
        tokens, values = (np.array(one.transpose(1, 2, 0), order="C") for one in (tokens, values))
        step = np.arange(tokens.shape[-1])
        num_steps = np.minimum(len(step), np.array(limits))[:, None]
        ends = (tokens == EOS) & (step < num_steps[..., None])
        finished = ends.any(-1)
        length = np.where(finished, ends.argmax(-1) + 1, num_steps)
        values[step >= length[..., None]] = 0
        return PathTables(tokens, values, length, finished)

    def written(self) -> list[list[tuple[int, ...]]]:
        """The tokens of every path, with its end if it has one."""
        return [
            [tuple(tokens[:length]) for tokens, length in zip(*rows, strict=True)]
            for rows in zip(self.tokens.tolist(), self.length.tolist(), strict=True)
        ]

    def hypotheses(self) -> list[list[Hypothesis]]:
        values = self.values.astype(np.float64)
        # One number after the other: the padding of a batch must not change the order of a sum.
        totals = values.cumsum(-1)[..., -1]
        columns = (self.tokens, values, self.length, self.finished, totals)
        return [
            [_hypothesis(*row) for row in zip(*rows, strict=True)]
            for rows in zip(*(column.tolist() for column in columns), strict=True)
        ]


def _hypothesis(
    tokens: list[int],
    values: list[float],
    length: int,
    finished: bool,  # noqa: FBT001
    total: float,
) -> Hypothesis:
    return Hypothesis(
        tokens=tuple(tokens[: length - finished]),
        log_probability=total,
        score=total / length,
        token_log_probabilities=tuple(values[:length]),
        finished=finished,
    )


@dataclass(frozen=True)
class TracedToken:
    """One continuation considered at one step: an edge of the search tree."""

    parent: int
    """Slot of the beam (at the step before) that this token continues."""
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
    """For every step the continuations considered, in order of their totals, best first."""

    steps: tuple[tuple[TracedToken, ...], ...]


@dataclass(frozen=True)
class WrittenPass:
    """What one pass over all positions changed; neither tokens before nor after hold the ends.

    The tokens before that were not deleted are, in order, the tokens after that are not new.
    """

    before: tuple[int, ...]
    """The tokens that the pass started from; none, or a draft, at the first pass."""
    deleted: tuple[bool, ...]
    """Of the tokens before: those that were deleted, or hidden to be predicted anew."""
    tokens: tuple[int, ...]
    """The tokens after the pass."""
    is_new: tuple[bool, ...]
    """Of the tokens after: those that this pass predicted."""
    log_probabilities: tuple[float, ...]
    """Of the tokens after, each when it was predicted; 0 for those of a draft."""
    deletion_probabilities: tuple[float, ...] = ()
    """Of the tokens before, if a model decides which of them are deleted."""


@dataclass(frozen=True)
class SearchResult:
    """All hypotheses of one sentence: best first (beam search), or as drawn (sampling)."""

    hypotheses: tuple[Hypothesis, ...]
    trace: SearchTrace | None = None
    """The search tree, if it was asked for (`GenerationSettings.can_trace`)."""
    passes: tuple[WrittenPass, ...] = ()
    """How the best hypothesis was written, if it was asked for (`records_passes`)."""
    record: Record | None = None
    """What was considered beside it, if it was asked for (`keeps_record`)."""
    num_steps: int | None = None
    """How often the model was asked, if it may write several tokens at a time."""

    @property
    def best(self) -> Hypothesis:
        return self.hypotheses[0]


def written_at_once(found: Hypothesis) -> tuple[WrittenPass, ...]:
    """The one pass of a decoder that looks at nothing twice."""
    count = len(found.tokens)
    values = found.token_log_probabilities[:count]
    return (WrittenPass((), (), found.tokens, (True,) * count, values),)


EMPTY_RESULT = SearchResult((Hypothesis((), 0.0, 0.0, (), finished=True),))
"""The result of an empty source: an empty line stays empty and no model is asked."""
