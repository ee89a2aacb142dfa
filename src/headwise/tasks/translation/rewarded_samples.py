"""Computes the rewards of the samples of a batch, and counts how often each was drawn.

Rewards compare texts: the tokenizer's text of a sample with that of the reference. The same text is
compared once. A reward that is no finite number is refused with the sentences that it was asked
for, before anything is learned from it.
Tested through the loss (sequence_loss.py), and by rewards that give NaN or too few numbers.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from headwise.decoding.results import PathTables
from headwise.decoding.search.distinct_samples import DistinctSamples
from headwise.errors import UsageError
from headwise.evaluation.rewards.declaration import Reward
from headwise.tasks.translation.sampled_rows import Written
from headwise.tasks.translation.token_pair import TokenPair
from headwise.text.tokenizer_pair import TokenizerPair

SHOWN = 200
"""Characters of a sentence that a message shows."""


class Importance(NamedTuple):
    """Of a sample drawn without replacement (training/sequence/distinct.py)."""

    probability: float
    """In the distribution that it was drawn from."""
    weight: float
    """That, divided by the probability to be among the samples."""


@dataclass(frozen=True)
class RewardedSamples:
    """Of one source sentence."""

    drawn: tuple[Written, ...]
    """All samples, in the order in which they were drawn."""
    log_probabilities: Float[np.ndarray, "sample step"]
    """Of their tokens; 0 behind the end."""
    counts: Counter[Written]
    """How often each was drawn."""
    rewards: dict[Written, float]
    """Of each sample, of the greedy output and of the reference."""
    greedy: Written
    importance: dict[Written, Importance] | None = None
    """Of each sample, if they were drawn without replacement."""

    @property
    def mean(self) -> float:
        """An estimate of the expected reward, without bias."""
        return sum(self.rewards[one] * self.weight(one) for one in self.counts)

    def weight(self, sample: Written) -> float:
        """By how much a sample counts in estimates of expectations."""
        if self.importance is None:
            return self.counts[sample] / len(self.drawn)
        return self.importance[sample].weight


def reward_samples(
    reward: Reward,
    tokenizers: TokenizerPair,
    pairs: Sequence[TokenPair],
    drawn: PathTables | DistinctSamples,
    references: Sequence[Written],
) -> list[RewardedSamples]:
    """For each pair; the first of its paths is the greedy output."""
    written, values, importance = _read_paths(drawn)
    counts = [Counter(paths[1:]) for paths in written]
    greedy = [paths[0] for paths in written]
    asked = [
        (number, one)
        for number, here in enumerate(counts)
        for one in dict.fromkeys([*here, greedy[number], references[number]])
    ]
    decode = tokenizers.target.decode
    texts = [decode(one) for _, one in asked]
    goals = [decode(pair.target) for pair in pairs]
    compared = list(dict.fromkeys(zip(texts, (goals[i] for i, _ in asked), strict=True)))
    rewards = reward([text for text, _ in compared], [goal for _, goal in compared])
    _check_count(len(rewards), len(compared))
    known = dict(zip(compared, map(float, rewards), strict=True))
    found: list[dict[Written, float]] = [{} for _ in pairs]
    for (number, one), text in zip(asked, texts, strict=True):
        value = known[text, goals[number]]
        if not math.isfinite(value):
            source = tokenizers.source.decode(pairs[number].source)
            raise _explain_value(value, source, text, goals[number])
        found[number][one] = value
    return [
        RewardedSamples(tuple(paths[1:]), numbers[1 : len(paths)], here, rewards, best, weights)
        for paths, numbers, here, rewards, best, weights in zip(
            written, values, counts, found, greedy, importance, strict=True
        )
    ]


def _read_paths(
    drawn: PathTables | DistinctSamples,
) -> tuple[
    list[list[Written]],
    Float[np.ndarray, "pair path step"],
    Sequence[dict[Written, Importance] | None],
]:
    """What was written for each pair, log-probabilities of the tokens, and importances."""
    if isinstance(drawn, PathTables):
        written = drawn.written()
        return written, drawn.values, [None] * len(written)
    written, importance = [], []
    probability = np.exp(drawn.log_probability)
    weight = np.exp(drawn.log_probability - drawn.log_inclusion)
    for number, paths in enumerate(drawn.paths.written()):
        there = int(np.isfinite(drawn.log_probability[number]).sum())
        columns = (paths[1 : there + 1], probability[number], weight[number])
        importance.append(
            {one: Importance(float(p), float(w)) for one, p, w in zip(*columns, strict=False)}
        )
        written.append(paths[: there + 1])
    return written, drawn.paths.values, importance


def _check_count(given: int, needed: int) -> None:
    if given != needed:
        raise UsageError(
            f"the reward gave {given} numbers for {needed} translations; it must give one for each",
            f"奖励函数为 {needed} 个译文给出了 {given} 个数；必须每个译文一个",
        )


def _explain_value(value: float, source: str, text: str, reference: str) -> UsageError:
    shown = [one if len(one) <= SHOWN else one[:SHOWN] + "…" for one in (source, text, reference)]
    return UsageError(
        f"the reward of a translation is {value}, but it must be a finite number: source "
        f"{shown[0]!r}, translation {shown[1]!r}, reference {shown[2]!r}; mend the reward or "
        "remove the pair. Nothing was learned from this batch, and the last checkpoint is good",
        f"某译文的奖励为 {value}，而它必须是有限的数：原文 {shown[0]!r}，译文 {shown[1]!r}，参考 "
        f"{shown[2]!r}；请改正奖励函数或删去该句对。本批未用于更新，上一个检查点完好",
    )
