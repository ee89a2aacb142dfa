"""Beam search in a room: the tensors of a whole search, and the round that turns them once.

The choice is `selection.select`, the same as in the plain loop; parents, tokens and log-probabilities of every step are written
to tables [time, sentence, slot], in which a sentence keeps its number when it goes on in a narrower room.
Tested: equals the plain beam search (`beam.py`), for fakes and for a model.
"""

from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

from headwise.decoding.engines.recorded import Rules, narrow_to
from headwise.decoding.results import Hypothesis
from headwise.decoding.rules.constraints import SearchSettings
from headwise.decoding.rules.length import LengthPenalty, StopRule, divisor, favours_length
from headwise.decoding.search.back_pointers import Finished, trace_back
from headwise.decoding.search.candidates import weigh_ranked
from headwise.decoding.search.selection import Beam, select
from headwise.decoding.stepper import BOS, EOS, Room
from headwise.gpu import runs_kernels

MAX_CANDIDATES = 4096
"""Of a sentence, for the choice in one kernel."""


def search_key(settings: SearchSettings, penalty: LengthPenalty, stop: StopRule) -> Hashable:
    """What a recorded round depends on, beside the room."""
    return "beam", Rules.key(settings), penalty, stop


class BeamRounds:
    """`outer` is the search in the wider room this one continues."""

    def __init__(
        self,
        room: Room,
        rules: Rules,
        *,
        penalty: LengthPenalty,
        stop: StopRule,
        outer: "BeamRounds | None" = None,
    ) -> None:
        self.room, self.rules, self.penalty, self.stop = room, rules, penalty, stop
        device = room.device
        self.beam = Beam.fresh(
            torch.ones(room.num_sentences, dtype=torch.long, device=device), room.width
        )
        self.tokens = torch.full(
            (room.num_sentences * room.width,), BOS, dtype=torch.long, device=device
        )
        self.rows = torch.zeros_like(self.tokens, dtype=torch.int32)
        self.numbers = torch.arange(room.num_sentences, device=device)
        self.divisors = torch.tensor(
            [1.0, *(float(divisor(penalty, n)) for n in range(1, room.max_length + 1))],
            device=device,
        )
        self.num_alive = torch.zeros(1, dtype=torch.long, device=device)
        self.history: tuple[Tensor, Tensor, Tensor]
        if outer is None:
            # One sentence more than there are: what filling does is written there.
            shape = (room.max_length, room.num_sentences + 1, room.width)
            whole = torch.zeros(shape, dtype=torch.long, device=device)
            self.history = whole, whole.clone(), torch.zeros(shape, device=device)
            self.results = Finished.none(room.num_sentences + 1, room.width, device=device)
        else:
            self.history, self.results = outer.history, outer.results
        self.play = room.record(self._round)

    def begin(self, limits: Sequence[int]) -> None:
        """A new batch is in the room; places without a sentence are done already."""
        padded = torch.tensor(
            [*limits, *[0] * (self.room.num_sentences - len(limits))], device=self.room.device
        )
        _assign(self.beam, Beam.fresh(padded, self.room.width))
        self.beam.done.copy_(padded == 0)
        self.tokens.fill_(BOS)

    def _round(self) -> None:
        room, beam = self.room, self.beam
        logits = room.step(self.tokens)
        count = min(2 * room.width, room.vocab)
        values, tokens = self.rules.rank(logits, beam.limits, time=room.time, count=count)
        if runs_kernels(values) and room.width * count <= MAX_CANDIDATES:
            self._choose_at_once(values, tokens)
        else:
            self._choose(values, tokens)
        room.follow(self.rows)
        torch.sum(~beam.done, 0, keepdim=True, out=self.num_alive)

    def _choose(self, values: Tensor, tokens: Tensor) -> None:
        time, beam = self.room.time, self.beam
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
            time=self.room.time,
            divisors=self.divisors,
            stop=self.stop,
            grows=favours_length(self.penalty),
            end=EOS,
        )

    def narrow(self) -> "BeamRounds":
        """In a smaller room, if there is one to go to."""
        self._store()
        kept = torch.nonzero(~self.beam.done)[:, 0]
        size = narrow_to(len(kept), self.room)
        if len(kept) == 0 or size == self.room.num_sentences:
            return self
        # Places that are left over repeat the first sentence, count as done, and write where nobody reads.
        filled = torch.cat([kept, kept[:1].expand(size - len(kept))])
        rows = (
            filled[:, None] * self.room.width + torch.arange(self.room.width, device=kept.device)
        ).view(-1)
        room = self.room.narrow(size, rows)
        inner = room.recall(
            search_key(self.rules.settings, self.penalty, self.stop),
            lambda: BeamRounds(room, self.rules, penalty=self.penalty, stop=self.stop, outer=self),
        )
        _assign(inner.beam, self.beam.select(filled))
        inner.beam.done[len(kept) :] = True
        inner.numbers.fill_(len(self.results.score) - 1)
        inner.numbers[: len(kept)] = self.numbers[kept]
        inner.tokens.copy_(self.tokens[rows])
        return inner

    def _store(self) -> None:
        """Finished hypotheses, under the sentences' own numbers."""
        for table, column in zip(self.results.tensors(), self.beam.finished.tensors(), strict=True):
            table[self.numbers] = column

    def read(self, num_sentences: int, *, num_best: int) -> list[tuple[Hypothesis, ...]]:
        """The hypotheses of the first sentences, best first; waits for the device."""
        self._store()
        parent, token, value = (
            table[: int(self.room.time), :num_sentences] for table in self.history
        )
        return trace_back(
            (parent.cpu().numpy(), token.cpu().numpy(), value.cpu().double().numpy()),
            self.results.best(num_sentences),
            num_best=num_best,
        )


def _assign(old: Beam, new: Beam) -> None:
    """The values of the new one in the tensors of the old."""
    old.running.copy_(new.running)
    old.done.copy_(new.done)
    if new.limits is not old.limits:
        old.limits.copy_(new.limits)
    for there, here in zip(old.finished.tensors(), new.finished.tensors(), strict=True):
        there.copy_(here)
