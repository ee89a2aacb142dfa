"""The part that greedy search and sampling share: every row follows one path and takes one token at
each step.

At each step every row takes exactly one token, y_t = choose(log p(· | y_<t, x)), until it takes the
end of the sentence or reaches its length limit. Rows never continue one another, so nothing is
reordered except to drop finished sentences.
Tested through greedy search and sampling.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from headwise.decoding.generation_settings import GenerationSettings, explain_unplanned_phrases
from headwise.decoding.results import Hypothesis, PathTables, SearchResult
from headwise.decoding.rules.constraints import Constraints, SentenceRules
from headwise.text.tokenizer import EOS

Choose = Callable[[Tensor, int, Tensor], Tensor]
"""(log-probabilities [row, vocab], step, numbers of the sentences alive) → a token per row."""


@dataclass(frozen=True)
class _Step:
    sentences: Tensor
    tokens: Tensor
    log_probabilities: Tensor


class PathSearch:
    """`width` paths for each sentence of a batch (`engines/plain.py` runs it)."""

    needs_attention = False

    def __init__(
        self,
        settings: GenerationSettings,
        phrases: Sequence[SentenceRules],
        choose: Choose,
        *,
        limits: Sequence[int],
        device: torch.device,
    ) -> None:
        _refuse_required(phrases)
        self.width, self.longest = settings.num_hypotheses, max(limits)
        self._choose, self._limits = choose, limits
        self._constraints = Constraints(
            settings, phrases, limits=limits, width=self.width, device=device
        )
        self._alive = torch.arange(len(limits), device=device)
        self._ended = torch.zeros(len(limits) * self.width, dtype=torch.bool, device=device)
        self._steps: list[_Step] = []

    @property
    def done(self) -> Tensor:
        return self._ended.view(-1, self.width).all(-1)

    def add_attention(self, attention: Tensor) -> None:
        raise AssertionError("a path needs no attention")

    def choose(self, scores: Tensor, step: int) -> tuple[Tensor, None]:
        scores = self._constraints.mask(scores)
        tokens = self._choose(scores, step, self._alive)
        chosen = scores.gather(1, tokens[:, None])[:, 0]
        self._steps.append(_Step(self._alive, tokens, chosen))
        at_limit = (self._constraints.limits == step + 1).repeat_interleave(self.width)
        self._ended = self._ended | (tokens == EOS) | at_limit
        return tokens, None

    def drop_done(
        self,
        tokens: Tensor,
        index: Tensor | None,
        on_result: Callable[[int, SearchResult], None] | None,
    ) -> tuple[Tensor, Tensor]:
        done = self.done
        kept = torch.nonzero(~done)[:, 0]
        if on_result is not None:
            self._report(self._alive[done], on_result)
        rows = kept[:, None] * self.width + torch.arange(self.width, device=kept.device)
        index = rows.reshape(-1)
        self._alive, self._ended = self._alive[kept], self._ended[index]
        self._constraints.keep(kept)
        return tokens[index], index

    def advance(self, tokens: Tensor, index: Tensor | None) -> None:
        self._constraints.advance(tokens, index=index)

    def finish(self) -> list[SearchResult]:
        return [SearchResult(tuple(found)) for found in self.tables().hypotheses()]

    def tables(self) -> PathTables:
        read = _read_steps(self._steps, num_sentences=len(self._limits), width=self.width)
        return PathTables.of(*read, limits=self._limits)

    def _report(self, sentences: Tensor, on_result: Callable[[int, SearchResult], None]) -> None:
        """Sentences that leave are done, whatever the others still write."""
        numbers = sentences.tolist()
        tokens, values = _read_steps(self._steps, num_sentences=len(self._limits), width=self.width)
        limits = [self._limits[number] for number in numbers]
        found = read_paths(tokens[:, numbers], values[:, numbers], limits=limits)
        for number, hypotheses in zip(numbers, found, strict=True):
            on_result(number, SearchResult(tuple(hypotheses)))


def _refuse_required(phrases: Sequence[SentenceRules]) -> None:
    if any(one.rules is not None and one.rules.required for one in phrases):
        raise explain_unplanned_phrases()


def _read_steps(
    steps: Sequence[_Step], *, num_sentences: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and log-probabilities by [step, sentence, row]."""
    shape = (len(steps), num_sentences, width)
    tokens, values = np.full(shape, EOS, dtype=np.int64), np.zeros(shape)
    first = 0
    # Steps with the same sentences are read together: every read waits for the device.
    for _, same in groupby(steps, key=lambda step: id(step.sentences)):
        group = list(same)
        sentences, here = group[0].sentences.cpu().numpy(), slice(first, first + len(group))
        tokens[here, sentences] = (
            torch.stack([step.tokens.view(-1, width) for step in group]).cpu().numpy()
        )
        chosen = torch.stack([step.log_probabilities.view(-1, width) for step in group])
        values[here, sentences] = chosen.double().cpu().numpy()
        first += len(group)
    return tokens, values


def read_paths(
    tokens: np.ndarray, values: np.ndarray, *, limits: Sequence[int]
) -> list[list[Hypothesis]]:
    """The hypotheses in tables [step, sentence, row], each up to its end of sentence or limit."""
    return PathTables.of(tokens, values, limits=limits).hypotheses()
