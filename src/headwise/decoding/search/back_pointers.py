"""Stores from which hypothesis of the last step each hypothesis of a beam search comes
(back-pointers).

A slot is one of the k rows of a sentence's beam. At step t, slot b continues slot parent[t, b] of
step t-1 with token[t, b]. Keeping parent, token and log-probability per slot costs O(1) per step;
copying whole sequences into their new slots would cost O(t). At the end, the sequence of each
finished hypothesis is read back from its last step to the start.
Tested through beam search against exhaustive enumeration.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.decoding.results import Hypothesis
from headwise.text.tokenizer import EOS


@dataclass(frozen=True)
class Finished:
    """The best finished hypotheses of each sentence, best first; empty places have score -inf."""

    score: Float[Tensor, "sentence place"]
    total: Float[Tensor, "sentence place"]
    log_probability: Float[Tensor, "sentence place"]
    """Of the last token alone."""
    origin: Int[Tensor, "sentence place 3"]
    """Last step, the slot it continued there, and the last token."""

    @staticmethod
    def none(
        num_sentences: int, size: int, *, device: torch.device, dtype: torch.dtype | None = None
    ) -> "Finished":
        nothing = torch.full((num_sentences, size), float("-inf"), device=device, dtype=dtype)
        origin = torch.zeros((num_sentences, size, 3), dtype=torch.long, device=device)
        return Finished(nothing, nothing.clone(), nothing.clone(), origin)

    def best(self, num_sentences: int) -> "Finished":
        """Of the first sentences, best first, if they were kept in any order."""
        first = Finished(*(column[:num_sentences] for column in self.tensors()))
        return Finished.none(
            *first.score.shape, device=self.score.device, dtype=self.score.dtype
        ).merge(first)

    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.score, self.total, self.log_probability, self.origin

    def merge(self, other: "Finished") -> "Finished":
        """The best of both, as many as `self` holds."""
        score = torch.cat([self.score, other.score], dim=1)
        best, place = score.topk(self.score.shape[1], dim=1)
        total = torch.cat([self.total, other.total], dim=1).gather(1, place)
        last = torch.cat([self.log_probability, other.log_probability], dim=1).gather(1, place)
        origin = torch.cat([self.origin, other.origin], dim=1).gather(
            1, place[:, :, None].expand(-1, -1, 3)
        )
        return Finished(best, total, last, origin)

    def select(self, sentences: Tensor) -> "Finished":
        return Finished(
            self.score[sentences],
            self.total[sentences],
            self.log_probability[sentences],
            self.origin[sentences],
        )


class BackPointers:
    """The back-pointers of a whole search; sentences keep their numbers when they finish."""

    def __init__(self, num_sentences: int, size: int) -> None:
        self.num_sentences, self.size = num_sentences, size
        self._steps: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        self._finished: list[tuple[Tensor, Finished]] = []

    def record(
        self, sentences: Tensor, parent: Tensor, token: Tensor, log_probability: Tensor
    ) -> None:
        """One step: for the sentences with these numbers, the three values of each slot."""
        self._steps.append((sentences, parent, token, log_probability))

    def retire(self, sentences: Tensor, finished: Finished) -> None:
        """These sentences are done."""
        self._finished.append((sentences, finished))

    def _read_steps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Parents, tokens and log-probabilities of all slots, [step, sentence, slot]."""
        shape = (len(self._steps), self.num_sentences, self.size)
        tables = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64), np.zeros(shape)
        first = 0
        # Steps with the same sentences are read together: every read waits for the device.
        for _, group in groupby(self._steps, key=lambda step: id(step[0])):
            steps = list(group)
            numbers = steps[0][0].cpu().numpy()
            for table, columns in zip(
                tables, zip(*(step[1:] for step in steps), strict=True), strict=True
            ):
                table[first : first + len(steps), numbers] = torch.stack(columns).cpu().numpy()
            first += len(steps)
        return tables

    def read_back(self, *, num_best: int) -> list[tuple[Hypothesis, ...]]:
        """The hypotheses of every sentence, best first."""
        tables = self._read_steps()
        results: list[tuple[Hypothesis, ...]] = [()] * self.num_sentences
        for retired in self._finished:
            for number, hypotheses in _read_retired(tables, *retired, num_best=num_best):
                results[number] = hypotheses
        return results

    def read_last(self, *, num_best: int) -> Iterator[tuple[int, tuple[Hypothesis, ...]]]:
        """Numbers and hypotheses of the sentences that were retired last."""
        return _read_retired(self._read_steps(), *self._finished[-1], num_best=num_best)


Tables = tuple[np.ndarray, np.ndarray, np.ndarray]


def _read_retired(
    tables: Tables, sentences: Tensor, finished: Finished, *, num_best: int
) -> Iterator[tuple[int, tuple[Hypothesis, ...]]]:
    numbers = sentences.cpu().numpy()
    parent, token, value = (table[:, numbers] for table in tables)
    return zip(
        numbers.tolist(),
        trace_back((parent, token, value), finished, num_best=num_best),
        strict=True,
    )


def trace_back(
    tables: tuple[np.ndarray, np.ndarray, np.ndarray], finished: Finished, *, num_best: int
) -> list[tuple[Hypothesis, ...]]:
    """The best hypotheses of each sentence.

    `tables` are parents, tokens and log-probabilities, [step, sentence, slot]. All hypotheses are
    followed back together, one step at a time.
    """
    score, total, last, origin = (
        column[:, :num_best].cpu().numpy() for column in finished.tensors()
    )
    steps, slot, final = origin[..., 0], origin[..., 1], origin[..., 2]
    longest = int(steps.max(initial=0)) + 1
    tokens, values = (
        np.zeros((longest, *steps.shape), dtype=np.int64),
        np.zeros((longest, *steps.shape)),
    )
    # One index for sentence and slot is several times as fast as a pair of indices.
    parent, token, value = (table.reshape(len(table), -1) for table in tables)
    base = np.arange(steps.shape[0])[:, None] * finished.score.shape[1]
    for step in range(longest - 2, -1, -1):
        here, within = base + slot, step < steps
        tokens[step], values[step] = token[step].take(here), value[step].take(here)
        slot = np.where(within, parent[step].take(here), slot)
    sentence, place = np.ogrid[: steps.shape[0], : steps.shape[1]]
    tokens[steps, sentence, place], values[steps, sentence, place] = final, last
    tokens, values = tokens.transpose(1, 2, 0), values.transpose(1, 2, 0)
    lengths, ended = (steps + 1).tolist(), (final == EOS).tolist()
    possible, totals, scores = np.isfinite(score).tolist(), total.tolist(), score.tolist()
    token_lists, value_lists = tokens.tolist(), values.tolist()
    return [
        tuple(
            Hypothesis(
                tokens=tuple(token_lists[i][j][: lengths[i][j] - ended[i][j]]),
                log_probability=totals[i][j],
                score=scores[i][j],
                token_log_probabilities=tuple(value_lists[i][j][: lengths[i][j]]),
                finished=ended[i][j],
            )
            for j in range(len(lengths[i]))
            if possible[i][j]
        )
        for i in range(len(lengths))
    ]
