"""Who continued whom: back-pointers instead of copied sequences, and the finished hypotheses that point into them.

At step t slot b of a sentence's beam continues slot parent[t, b] of step t-1 with token[t, b]. Keeping these three numbers
per slot costs O(1) per step, where copying whole sequences into their new slots costs O(t); the sequences are read
back once, at the end, from each finished hypothesis (its last step, slot and token) to the start.
Tested through beam search against exhaustive enumeration.
"""

from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.decoding.results import Hypothesis
from headwise.decoding.stepping import EOS


@dataclass(frozen=True)
class Finished:
    """The best finished hypotheses of each sentence so far, best first; empty places have score -inf."""

    score: Float[Tensor, "sentence place"]
    total: Float[Tensor, "sentence place"]
    log_probability: Float[Tensor, "sentence place"]
    """Of the last token alone."""
    origin: Int[Tensor, "sentence place 3"]
    """Last step, the slot it continued there, and the last token."""

    @staticmethod
    def none(num_sentences: int, size: int, *, device: torch.device, dtype: torch.dtype | None = None) -> "Finished":
        nothing = torch.full((num_sentences, size), float("-inf"), device=device, dtype=dtype)
        origin = torch.zeros((num_sentences, size, 3), dtype=torch.long, device=device)
        return Finished(nothing, nothing, nothing, origin)

    def merge(self, other: "Finished") -> "Finished":
        """The best of both, as many as `self` holds."""
        score = torch.cat([self.score, other.score], dim=1)
        best, place = score.topk(self.score.shape[1], dim=1)
        total = torch.cat([self.total, other.total], dim=1).gather(1, place)
        last = torch.cat([self.log_probability, other.log_probability], dim=1).gather(1, place)
        origin = torch.cat([self.origin, other.origin], dim=1).gather(1, place[:, :, None].expand(-1, -1, 3))
        return Finished(best, total, last, origin)

    def select(self, sentences: Tensor) -> "Finished":
        return Finished(
            self.score[sentences], self.total[sentences], self.log_probability[sentences], self.origin[sentences]
        )


class Lineage:
    """The back-pointers of a whole search; sentences leave it as they finish and keep their numbers."""

    def __init__(self, num_sentences: int, size: int) -> None:
        self.num_sentences, self.size = num_sentences, size
        self._steps: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        self._finished: list[tuple[Tensor, Finished]] = []

    def record(self, sentences: Tensor, parent: Tensor, token: Tensor, log_probability: Tensor) -> None:
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
        # Steps with the same sentences are read in one go: every read from a device waits for it.
        for _, group in groupby(self._steps, key=lambda step: id(step[0])):
            steps = list(group)
            numbers = steps[0][0].cpu().numpy()
            for table, columns in zip(tables, zip(*(step[1:] for step in steps), strict=True), strict=True):
                table[first : first + len(steps), numbers] = torch.stack(columns).cpu().numpy()
            first += len(steps)
        return tables

    def read_back(self, *, num_best: int) -> list[tuple[Hypothesis, ...]]:
        """The hypotheses of every sentence, best first."""
        parent, token, value = self._read_steps()
        results: list[tuple[Hypothesis, ...]] = [()] * self.num_sentences
        for sentences, finished in self._finished:
            rows = finished.score[:, :num_best].cpu().numpy()
            totals, lasts = finished.total.cpu().numpy(), finished.log_probability.cpu().numpy()
            origins = finished.origin.cpu().numpy()
            for i, number in enumerate(sentences.tolist()):
                results[number] = tuple(
                    _read_hypothesis(
                        (parent[:, number], token[:, number], value[:, number]),
                        origins[i, place].tolist(),
                        last=float(lasts[i, place]),
                        total=float(totals[i, place]),
                        score=float(rows[i, place]),
                    )
                    for place in range(rows.shape[1])
                    if np.isfinite(rows[i, place])
                )
        return results


def _read_hypothesis(
    tables: tuple[np.ndarray, np.ndarray, np.ndarray], origin: list[int], *, last: float, total: float, score: float
) -> Hypothesis:
    parent, token, value = tables
    step, slot, final = origin
    tokens, values = [final], [last]
    for earlier in range(step - 1, -1, -1):
        tokens.append(int(token[earlier, slot]))
        values.append(float(value[earlier, slot]))
        slot = parent[earlier, slot]
    finished = final == EOS
    return Hypothesis(
        tokens=tuple(reversed(tokens[1:] if finished else tokens)),
        log_probability=total,
        score=score,
        token_log_probabilities=tuple(reversed(values)),
        finished=finished,
    )
