"""Beam search for the recorded engine: the tensors of a whole search, and the step that updates
them.

The choice is `selection.select`, the same as in the plain engine. Parents, tokens and
log-probabilities of every step are written to tables [time, sentence, slot], where a slot is one of
the k rows of a sentence's beam.
Tested: equals the plain beam search, for fakes and for a model.
"""

from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

from headwise.decoding.engines.recorded import RecordedRules, RecordedSearch, StaticBuffers
from headwise.decoding.results import Hypothesis
from headwise.decoding.search.back_pointers import Finished, trace_back
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.candidates import weigh_ranked
from headwise.decoding.search.length_penalty import divisor, favours_length
from headwise.decoding.search.selection import Beam, select
from headwise.gpu import runs_kernels
from headwise.text.tokenizer import BOS, EOS

MAX_CANDIDATES = 4096
"""Of a sentence, for the choice in one kernel."""


def record_beam(settings: BeamSettings, buffers: StaticBuffers) -> "RecordedBeam":
    """The recorded search of these settings: made once for each size of buffers."""
    search = buffers.recall(
        _key(settings),
        lambda: RecordedBeam(buffers, RecordedRules(settings, buffers), settings=settings),
    )
    search.num_best = settings.num_best
    return search


def _key(settings: BeamSettings) -> Hashable:
    return "beam", RecordedRules.key(settings), settings.length_penalty, settings.stop


class RecordedBeam(RecordedSearch):
    """`outer` is the search in the larger buffers that this one continues."""

    def __init__(
        self,
        buffers: StaticBuffers,
        rules: RecordedRules,
        *,
        settings: BeamSettings,
        outer: "RecordedBeam | None" = None,
    ) -> None:
        self.settings, self.penalty, self.stop = settings, settings.length_penalty, settings.stop
        self.num_best = settings.num_best
        count, device = buffers.num_sentences, buffers.device
        limits = torch.ones(count, dtype=torch.long, device=device)
        self.beam = Beam.fresh(limits, buffers.width)
        self.rows = torch.zeros(count * buffers.width, dtype=torch.int32, device=device)
        lengths = range(1, buffers.max_length + 1)
        self.divisors = torch.tensor(
            [1.0, *(float(divisor(self.penalty, n)) for n in lengths)], device=device
        )
        self.history: tuple[Tensor, Tensor, Tensor]
        if outer is None:
            shape = (buffers.max_length, count + 1, buffers.width)
            whole = torch.zeros(shape, dtype=torch.long, device=device)
            self.history = whole, whole.clone(), torch.zeros(shape, device=device)
            self.results = Finished.none(count + 1, buffers.width, device=device)
        else:
            self.history, self.results = outer.history, outer.results
        super().__init__(buffers, rules)

    @property
    def key(self) -> Hashable:
        return _key(self.settings)

    @property
    def done(self) -> Tensor:
        return self.beam.done

    @property
    def padding_number(self) -> int:
        return len(self.results.score) - 1

    def begin(self, limits: Sequence[int]) -> None:
        padded = self.padded(limits)
        _assign(self.beam, Beam.fresh(padded, self.buffers.width))
        self.beam.done.copy_(padded == 0)
        self.tokens.fill_(BOS)

    def play_plainly(self) -> None:
        buffers, beam = self.buffers, self.beam
        logits = buffers.step(self.tokens)
        count = min(2 * buffers.width, buffers.vocab)
        values, tokens = self.rules.rank(logits, beam.limits, time=buffers.time, count=count)
        if runs_kernels(values) and buffers.width * count <= MAX_CANDIDATES:
            self._choose_at_once(values, tokens)
        else:
            self._choose(values, tokens)
        buffers.follow(self.rows)
        torch.sum(~beam.done, 0, keepdim=True, out=self.num_alive)

    def _choose(self, values: Tensor, tokens: Tensor) -> None:
        time, beam = self.buffers.time, self.beam
        candidates = weigh_ranked(values.to(beam.running.dtype), tokens, beam.running)
        chosen = select(beam, candidates, length=time, penalty=self.penalty, stop=self.stop)
        here = (time - 1, self.numbers)
        for table, column in zip(
            self.history, (chosen.parent, chosen.token, chosen.log_probability), strict=True
        ):
            table[here] = column
        _assign(beam, chosen.beam)
        self.tokens.copy_(chosen.token.view(-1))
        self.rows.copy_(chosen.rows)

    def _choose_at_once(self, values: Tensor, tokens: Tensor) -> None:
        from headwise.gpu.beam_selection import BeamTensors
        from headwise.gpu.beam_selection import select as select_at_once

        beam = self.beam
        tensors = BeamTensors(
            beam.running,
            *beam.finished.tensors(),
            done=beam.done.view(torch.uint8),
            limits=beam.limits,
            numbers=self.numbers,
            history=self.history,
            tokens=self.tokens,
            rows=self.rows,
        )
        select_at_once(
            values,
            tokens,
            tensors,
            time=self.buffers.time,
            divisors=self.divisors,
            stop=self.stop,
            grows=favours_length(self.penalty),
            end=EOS,
        )

    def inside(self, buffers: StaticBuffers) -> "RecordedBeam":
        return RecordedBeam(buffers, self.rules, settings=self.settings, outer=self)

    def hand_over(self, inner: "RecordedBeam", sentences: Tensor, num_kept: int) -> None:
        inner.num_best = self.num_best
        _assign(inner.beam, self.beam.select(sentences))
        inner.beam.done[num_kept:] = True

    def store(self) -> None:
        """Finished hypotheses, under the sentences' own numbers."""
        for table, column in zip(self.results.tensors(), self.beam.finished.tensors(), strict=True):
            table[self.numbers] = column

    def read(self, limits: Sequence[int]) -> list[tuple[Hypothesis, ...]]:
        self.store()
        parent, token, value = (
            table[: int(self.buffers.time), : len(limits)] for table in self.history
        )
        return trace_back(
            (parent.cpu().numpy(), token.cpu().numpy(), value.cpu().double().numpy()),
            self.results.best(len(limits)),
            num_best=self.num_best,
        )


def _assign(old: Beam, new: Beam) -> None:
    """Write the values of the new beam into the tensors of the old one."""
    old.running.copy_(new.running)
    old.done.copy_(new.done)
    if new.limits is not old.limits:
        old.limits.copy_(new.limits)
    for there, here in zip(old.finished.tensors(), new.finished.tensors(), strict=True):
        there.copy_(here)
