"""Writes the results of a language model as plain data: scores of sentences and texts, and
continuations.

A model without smoothing gives some sentences probability 0, so their score is infinite. JSON has
no infinity; such scores become None.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class TokenScore:
    """One token of a sentence, as the tokenizer writes it, and its natural log-probability."""

    token: str
    log_probability: float
    is_known: bool


@dataclass(frozen=True)
class SentenceScore:
    """How natural a sentence is."""

    text: str
    tokens: tuple[TokenScore, ...]

    @property
    def total(self) -> float:
        return math.fsum(token.log_probability for token in self.tokens)

    @property
    def perplexity(self) -> float:
        return perplexity_of(self.total, len(self.tokens))

    @property
    def num_unknown(self) -> int:
        return sum(not token.is_known for token in self.tokens)

    @property
    def is_mostly_unknown(self) -> bool:
        """Whether more than half of its words are unknown; the end of the sentence is no word."""
        return 2 * self.num_unknown > len(self.tokens) - 1

    def as_dict(self) -> dict[str, Any]:
        """Plain data; what is infinite becomes None, JSON has no infinity."""
        return {
            "text": self.text,
            "log_probability": finite(self.total),
            "perplexity": finite(self.perplexity),
            "unknown": self.num_unknown,
            "tokens": [
                {
                    "token": one.token,
                    "log_probability": finite(one.log_probability),
                    "known": one.is_known,
                }
                for one in self.tokens
            ],
        }


NoVerdict = Literal["tied", "unknown_words"]


@dataclass(frozen=True)
class Verdict:
    """Which of several sentences is the most natural one, or why that cannot be said."""

    best: int | None
    reason: NoVerdict | None = None

    def as_dict(self) -> dict[str, Any]:
        return {"best": self.best, "no_best_because": self.reason}


def judge(scores: Sequence[SentenceScore]) -> Verdict:
    """The sentence with the highest total.

    An unknown word has the probability of <unk>, whatever word it is: totals of sentences whose
    words are mostly unknown compare how many words they have, and say nothing about how natural
    they are.
    """
    if any(score.is_mostly_unknown for score in scores):
        return Verdict(None, "unknown_words")
    totals = [score.total for score in scores]
    best = max(range(len(totals)), key=totals.__getitem__)
    return Verdict(None, "tied") if totals.count(totals[best]) > 1 else Verdict(best)


@dataclass(frozen=True)
class TextScore:
    """A whole text: so many predictions (words and ends of sentences), so many of them unknown
    words.
    """

    num_predictions: int
    num_unknown: int
    total: float

    @property
    def perplexity(self) -> float:
        return perplexity_of(self.total, self.num_predictions)

    def as_dict(self) -> dict[str, Any]:
        return {
            "perplexity": finite(self.perplexity),
            "predictions": self.num_predictions,
            "unknown": self.num_unknown,
        }


@dataclass
class LineScores:
    """Of each line its log-probability and how many tokens were predicted, its end included."""

    sums: list[NDArray[np.float64]] = field(default_factory=list)
    counts: list[NDArray[np.int64]] = field(default_factory=list)

    def add(self, scores: NDArray[np.float32], counts: NDArray[np.int64]) -> None:
        """Log-probabilities of all tokens of some lines in a row, and the tokens of each line."""
        if len(counts):
            starts = np.cumsum(counts) - counts
            self.sums.append(np.add.reduceat(scores.astype(np.float64), starts))
            self.counts.append(counts)


@dataclass(frozen=True)
class Prediction:
    """A continuation, its text and tokens, and its natural log-probability."""

    text: str
    tokens: tuple[str, ...]
    log_probability: float

    @property
    def label(self) -> str:
        """For a table: a space by itself is written as the tokenizer writes it."""
        return self.text if self.text.strip() else "".join(self.tokens)

    def as_dict(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "tokens": list(self.tokens),
            "log_probability": finite(self.log_probability),
            "probability": math.exp(min(self.log_probability, 0.0)),
        }


def perplexity_of(total: float, count: int) -> float:
    exponent = -total / max(1, count)
    return math.exp(exponent) if exponent < 700 else math.inf


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
