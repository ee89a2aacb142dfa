"""Noisy parallel decoding: several translations of each sentence are made, and a judge chooses one.

A parallel decoder is sure of its tokens only once length or fertilities are fixed. Trying several
of them costs little, because all translations are computed side by side. An autoregressive model
then reads each in one pass (no search) and gives its log-probability:

    best = argmax_candidate  log p(y, </s> | x)              total
                          or log p(y, </s> | x) / (|y| + 1)  mean over tokens

The total prefers short candidates; the mean does not, and is usual where lengths differ (fairseq's
length beam). All candidates are judged in the same way, and equal ones once only. Of equally good
candidates the first wins, so candidates should come most likely first.

Gu et al. 2018, *Non-Autoregressive Neural Machine Translation* (a sample of fertilities, total);
Ghazvininejad et al. 2019 (lengths, mean).
Tested against: a loop over all candidates; one candidate is returned as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from headwise.errors import UsageError

Tokens = Sequence[int]
Comparison = Literal["mean", "total"]


class Judge(Protocol):
    """A model that gives the probability of a translation."""

    def log_probabilities(
        self, sources: Sequence[Tokens], targets: Sequence[Tokens]
    ) -> Sequence[float]:
        """log p(target, end of sentence | source) of each pair, in one teacher-forced pass."""
        ...


@dataclass(frozen=True)
class ChosenCandidate:
    """The chosen candidate of one sentence, and what the judge said of it."""

    number: int
    tokens: tuple[int, ...]
    log_probability: float
    score: float
    """The mean or the total, by which candidates were compared."""


def choose_candidates(
    sources: Sequence[Tokens],
    candidates: Sequence[Sequence[Tokens]],
    *,
    judge: Judge,
    comparison: Comparison = "mean",
) -> list[ChosenCandidate]:
    """The best candidate of each source; tokens come without the end of sentence."""
    if len(sources) != len(candidates) or not all(candidates):
        empty = [number for number, some in enumerate(candidates) if not some]
        raise UsageError(
            f"{len(sources)} sources and candidates for {len(candidates)} were given, none for "
            f"{empty[:5]}; each source needs at least one candidate: raise the number of lengths "
            "or samples",
            f"给出了 {len(sources)} 个源句和 {len(candidates)} 组候选，其中 {empty[:5]} 没有候选；"
            "每个源句至少需要一个候选：请增大长度数或采样数",
        )
    different = [list(dict.fromkeys(tuple(one) for one in some)) for some in candidates]
    asked = [(source, one) for source, some in zip(sources, different, strict=True) for one in some]
    answers = iter(judge.log_probabilities([s for s, _ in asked], [t for _, t in asked]))
    chosen = []
    for given, some in zip(candidates, different, strict=True):
        numbers = [[tuple(one) for one in given].index(tokens) for tokens in some]
        judged = [
            _judge(number, tokens, next(answers), comparison)
            for number, tokens in zip(numbers, some, strict=True)
        ]
        chosen.append(max(judged, key=lambda one: one.score))
    return chosen


def _judge(
    number: int, tokens: tuple[int, ...], total: float, comparison: Comparison
) -> ChosenCandidate:
    score = total / (len(tokens) + 1) if comparison == "mean" else total
    return ChosenCandidate(number, tokens, total, score)
