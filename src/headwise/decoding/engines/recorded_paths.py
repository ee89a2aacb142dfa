"""Greedy search for the engine that records one step as a CUDA graph and replays it (recorded.py):
each step takes the most probable token of every sentence.

A replayed step works on tensors of fixed shape, so tokens and their log-probabilities are written
to tables [time, sentence] that exist beforehand.
Tested: equals the plain engine (`plain.py`), for fakes and for a model.
"""

from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

from headwise.decoding.engines.recorded import RecordedRules, RecordedSearch, StaticBuffers
from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.results import Hypothesis
from headwise.decoding.search.paths import read_paths
from headwise.text.tokenizer import BOS, EOS


def record_paths(settings: GenerationSettings, buffers: StaticBuffers) -> "RecordedPaths":
    """The recorded search of these settings: made once for each size of buffers."""
    return buffers.recall(
        _key(settings), lambda: RecordedPaths(buffers, RecordedRules(settings, buffers))
    )


def _key(settings: GenerationSettings) -> Hashable:
    return "greedy", RecordedRules.key(settings)


class RecordedPaths(RecordedSearch):
    """One row per sentence; `outer` is the search in the larger buffers that this one continues."""

    def __init__(
        self,
        buffers: StaticBuffers,
        rules: RecordedRules,
        *,
        outer: "RecordedPaths | None" = None,
    ) -> None:
        assert buffers.width == 1
        self.limits = torch.ones(buffers.num_sentences, dtype=torch.long, device=buffers.device)
        self.ended = torch.ones_like(self.limits, dtype=torch.bool)
        if outer is None:
            shape = (buffers.max_length, buffers.num_sentences + 1)
            self.path = torch.zeros(shape, dtype=torch.long, device=buffers.device)
            self.values = torch.zeros_like(self.path, dtype=torch.float32)
        else:
            self.path, self.values = outer.path, outer.values
        super().__init__(buffers, rules)

    @property
    def key(self) -> Hashable:
        return _key(self.rules.settings)

    @property
    def done(self) -> Tensor:
        return self.ended

    @property
    def padding_number(self) -> int:
        return self.path.shape[1] - 1

    def begin(self, limits: Sequence[int]) -> None:
        padded = self.padded(limits)
        self.limits.copy_(padded)
        self.ended.copy_(padded == 0)
        self.tokens.fill_(BOS)
        self.path.fill_(EOS)

    def play_plainly(self) -> None:
        buffers = self.buffers
        logits = buffers.step(self.tokens)
        values, tokens = self.rules.rank(logits, self.limits, time=buffers.time, count=1)
        here = (buffers.time - 1, self.numbers)
        self.path[here] = tokens[:, 0]
        self.values[here] = values[:, 0].to(self.values.dtype)
        self.tokens.copy_(tokens[:, 0])
        self.ended.logical_or_((self.limits == buffers.time) | (tokens[:, 0] == EOS))
        torch.sum(~self.ended, 0, keepdim=True, out=self.num_alive)

    def store(self) -> None:
        """Every step writes to the tables already."""

    def inside(self, buffers: StaticBuffers) -> "RecordedPaths":
        return RecordedPaths(buffers, self.rules, outer=self)

    def hand_over(self, inner: "RecordedPaths", sentences: Tensor, num_kept: int) -> None:
        inner.limits.copy_(self.limits[sentences])
        inner.ended.copy_(torch.arange(len(sentences), device=sentences.device) >= num_kept)

    def read(self, limits: Sequence[int]) -> list[tuple[Hypothesis, ...]]:
        num_steps = int(self.buffers.time)
        tokens, values = (
            table[:num_steps, : len(limits), None].cpu() for table in (self.path, self.values)
        )
        found = read_paths(tokens.numpy(), values.double().numpy(), limits=limits)
        return [tuple(hypotheses) for hypotheses in found]
