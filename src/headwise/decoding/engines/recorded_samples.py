"""Sampling for the recorded engine (recorded.py): each step draws a token for every row.

    uniform [time, sentence, row]         the random numbers, made before the batch
    forced [time, sentence]               the token that all rows of a sentence take, or none
    path, values [time, sentence, row]    the tokens drawn, and their log-probabilities

A recorded step asks nothing of the host, so all that differs from batch to batch or from step to
step is in tables, of which it reads the place of its time. A sentence is done when all of its rows
are. The draw is that of the plain engine (search/row_draws.py): with the same numbers both draw the
same tokens, but for rounding. Cuts (top_k, top_p) are left to the plain engine.
Tested: equals the plain engine, for fakes and for a model.
"""

from collections.abc import Hashable, Sequence

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor

from headwise.decoding.engines.recorded import RecordedRules, RecordedSearch, StaticBuffers
from headwise.decoding.results import Hypothesis, PathTables
from headwise.decoding.search.row_draws import FREE, draw_rows
from headwise.decoding.search.sampling import SamplingSettings
from headwise.text.tokenizer import BOS, EOS


def record_samples(
    settings: SamplingSettings, buffers: StaticBuffers, *, renormalizes: bool = False
) -> "RecordedSamples":
    """The recorded search of these settings: made once for each size of buffers.

    `renormalizes`: log-probabilities are those among the tokens that may be drawn.
    """
    return buffers.recall(
        _key(settings, renormalizes=renormalizes),
        lambda: RecordedSamples(
            buffers, RecordedRules(settings, buffers), settings, renormalizes=renormalizes
        ),
    )


def _key(settings: SamplingSettings, *, renormalizes: bool) -> Hashable:
    return "sampling", settings.temperature, renormalizes, RecordedRules.key(settings)


class RecordedSamples(RecordedSearch):
    """`outer` is the search in the larger buffers that this one continues."""

    def __init__(
        self,
        buffers: StaticBuffers,
        rules: RecordedRules,
        settings: SamplingSettings,
        *,
        renormalizes: bool,
        outer: "RecordedSamples | None" = None,
    ) -> None:
        assert settings.has_no_cuts
        self.settings, self.renormalizes = settings, renormalizes
        count, width, device = buffers.num_sentences, buffers.width, buffers.device
        self.limits = torch.ones(count, dtype=torch.long, device=device)
        self.ended = torch.ones((count, width), dtype=torch.bool, device=device)
        if outer is None:
            shape = (buffers.max_length, count + 1, width)
            self.path = torch.zeros(shape, dtype=torch.long, device=device)
            self.values = torch.zeros(shape, device=device)
            self.uniform = torch.zeros(shape, device=device)
            self.forced = torch.full(shape[:2], FREE, dtype=torch.long, device=device)
        else:
            self.path, self.values = outer.path, outer.values
            self.uniform, self.forced = outer.uniform, outer.forced
        super().__init__(buffers, rules)

    @property
    def key(self) -> Hashable:
        return _key(self.settings, renormalizes=self.renormalizes)

    @property
    def done(self) -> Tensor:
        return self.ended.all(1)

    @property
    def padding_number(self) -> int:
        return self.path.shape[1] - 1

    def give(self, uniform: np.ndarray, prefixes: Sequence[Sequence[int]] = ()) -> None:
        """The random numbers [step, sentence, row] and the prefixes of the batch that comes."""
        num_steps, num_sentences, _ = uniform.shape
        self.uniform[:num_steps, :num_sentences].copy_(torch.from_numpy(uniform))
        self.forced.fill_(FREE)
        longest = max(map(len, prefixes), default=0)
        if longest:
            table = [[*one, *[FREE] * (longest - len(one))] for one in prefixes]
            self.forced[:longest, : len(prefixes)].copy_(torch.tensor(table).t())

    def begin(self, limits: Sequence[int]) -> None:
        padded = self.padded(limits)
        self.limits.copy_(padded)
        self.ended.copy_((padded == 0)[:, None].expand_as(self.ended))
        self.tokens.fill_(BOS)
        self.path.fill_(EOS)

    def play_plainly(self) -> None:
        buffers = self.buffers
        logits = buffers.step(self.tokens)
        here = (buffers.time - 1, self.numbers)
        values, tokens = draw_rows(
            logits,
            self.rules.banned_at(buffers.time),
            self.uniform[here].flatten(),
            self._of_rows(self.forced[here]),
            temperature=self.settings.temperature,
            renormalizes=self.renormalizes,
        )
        is_last = self._of_rows(self.limits == buffers.time)
        if self.settings.at_limit == "end":
            values, tokens = values.masked_fill(is_last, 0.0), tokens.masked_fill(is_last, EOS)
        self.path[here] = tokens.view_as(self.ended)
        self.values[here] = values.view_as(self.ended).to(self.values.dtype)
        self.tokens.copy_(tokens)
        self.ended.logical_or_((is_last | (tokens == EOS)).view_as(self.ended))
        torch.sum(~self.done, 0, keepdim=True, out=self.num_alive)

    def _of_rows(self, of_sentences: Shaped[Tensor, "sentence"]) -> Shaped[Tensor, "row"]:
        return of_sentences[:, None].expand_as(self.ended).flatten()

    def store(self) -> None:
        """Every step writes to the tables already."""

    def inside(self, buffers: StaticBuffers) -> "RecordedSamples":
        return RecordedSamples(
            buffers, self.rules, self.settings, renormalizes=self.renormalizes, outer=self
        )

    def hand_over(self, inner: "RecordedSamples", sentences: Tensor, num_kept: int) -> None:
        inner.limits.copy_(self.limits[sentences])
        inner.ended.copy_(self.ended[sentences])
        inner.ended[num_kept:] = True

    def read(self, limits: Sequence[int]) -> list[tuple[Hypothesis, ...]]:
        return [tuple(found) for found in self.tables(limits).hypotheses()]

    def tables(self, limits: Sequence[int]) -> PathTables:
        """The same without a Python object for each of them; waits for the device."""
        num_steps = int(self.buffers.time)
        tokens, values = (
            table[:num_steps, : len(limits)].cpu().numpy() for table in (self.path, self.values)
        )
        return PathTables.of(tokens, values, limits=limits)
