"""Beam search: keep the k best unfinished hypotheses at every step and the k best finished ones seen so far.

At step t each of the k rows offers its continuations, log p(y_<t) + log p(w | y_<t); the 2k best of all k · |V| are looked
at, which always leaves k that do not end. Those among the first k that end the sentence are scored (`length.py`) and
compete for k finished places; the k best others run on. A sentence stops by its stop rule or at its length limit,
where the hypotheses of the first k ranks are taken as they are.

With the default settings (length_penalty average 1.0, stop likely) this is, token for token, `generate(num_beams=k)` of
transformers 5 with its defaults (length_penalty=1.0, early_stopping=False; n counts generated tokens, end included;
max_length here = max_new_tokens there). All sentences of a batch step together; finished ones are dropped when a
quarter is done; histories are back-pointers (`lineage.py`), so a step copies only what the stepper's reorder copies.

Tested against `generate`, exhaustive enumeration, a hand-worked tree where greed fails, and: a sentence alone = in any batch.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

from headwise.decoding.engines.recorded import Rules, enter_room, run_rounds
from headwise.decoding.engines.recorded_beam import BeamRounds, search_key
from headwise.decoding.results import SearchResult, Tell
from headwise.decoding.rules.constraints import Constraints, Phrases, SearchSettings
from headwise.decoding.rules.length import (
    AverageLength,
    LengthPenalty,
    StopRule,
    limit_for,
    penalize_coverage,
)
from headwise.decoding.search.back_pointers import Lineage
from headwise.decoding.search.candidates import Candidates, weigh_best
from headwise.decoding.search.required_phrases import weigh_required
from headwise.decoding.search.selection import Beam, select
from headwise.decoding.stepper import (
    BOS,
    AttendingStepper,
    Room,
    State,
    Stepper,
    pays_to_compact,
    steps_between_checks,
)
from headwise.decoding.trace import Tracer
from headwise.errors import SettingsError, UsageError

MAX_SIZE = 1024


class BeamSettings(SearchSettings):
    plans: ClassVar[bool] = True
    kind: Literal["beam"] = "beam"
    size: int = Field(default=5, ge=1, le=MAX_SIZE)
    """Hypotheses kept at every step."""
    num_best: int = Field(default=1, ge=1, le=MAX_SIZE)
    """Hypotheses returned, best first."""
    length_penalty: LengthPenalty = AverageLength()
    coverage_penalty: float = Field(default=0.0, ge=0)
    """beta of the coverage penalty; needs a model that shows its attention."""
    stop: StopRule = "likely"

    @model_validator(mode="after")
    def _check_best(self) -> "BeamSettings":
        if self.num_best > self.size:
            raise SettingsError(
                f"num_best ({self.num_best}) cannot exceed the beam's size ({self.size}); set size={self.num_best} as well "
                f"(headwise translate: --set size={self.num_best}; in a recipe: decoding.size={self.num_best})",
                f"num_best（{self.num_best}）不能超过束宽 size（{self.size}）；请同时设 size={self.num_best}"
                f"（headwise translate：--set size={self.num_best}；配方中：decoding.size={self.num_best}）",
            )
        return self


@torch.no_grad()
def search_beams(
    stepper: Stepper[State],
    sources: Sequence[Sequence[int]],
    settings: BeamSettings,
    *,
    phrases: Sequence[Phrases],
    traced: bool = False,
    tell: Tell | None = None,
) -> list[SearchResult]:
    """The `num_best` best hypotheses of each non-empty source; `phrases` holds one entry per source."""
    if settings.coverage_penalty and not isinstance(stepper, AttendingStepper):
        raise UsageError(
            "coverage_penalty is set but this model does not show its attention; set decoding.coverage_penalty=0",
            "设置了 coverage_penalty，但该模型不提供注意力；请设 decoding.coverage_penalty=0",
        )
    device, size = stepper.device, settings.size
    limits = [limit_for(settings.max_length, len(source)) for source in sources]
    if not traced and not settings.coverage_penalty:
        room = enter_room(stepper, sources, settings, phrases=phrases, limits=limits, width=size)
        if room is not None:
            return _search_in_room(room, settings, limits)
    beam = _Beam(settings, sources, phrases, device=device, traced=traced)
    state = stepper.start(sources, width=size, max_length=beam.longest)
    tokens = torch.full((len(sources) * size,), BOS, dtype=torch.long, device=device)
    for step in range(beam.longest):
        scores, state = stepper.step(state, tokens)
        if settings.coverage_penalty and isinstance(stepper, AttendingStepper):
            beam.cover(stepper.attention(state))
        tokens, index = beam.choose(scores, step)
        if step % steps_between_checks(device) == 0 or step + 1 == beam.longest:
            num_done = int(beam.done.sum())
            if num_done == len(beam.alive):
                break
            if num_done and pays_to_compact(num_done, len(beam.alive)):
                tokens, index = beam.compact(tokens, index, tell=tell)
        beam.advance(tokens, index)
        # On the CPU it costs nothing to see that every row stays where it is, and then no cache need be touched.
        stays = device.type == "cpu" and torch.equal(
            index, torch.arange(len(scores), device=device)
        )
        state = state if stays else stepper.reorder(state, index)
    return beam.finish()


def _search_in_room(
    room: Room, settings: BeamSettings, limits: Sequence[int]
) -> list[SearchResult]:
    penalty, stop = settings.length_penalty, settings.stop
    rounds = room.recall(
        search_key(settings, penalty, stop),
        lambda: BeamRounds(room, Rules(settings, room), penalty=penalty, stop=stop),
    )
    rounds.begin(limits)
    found = run_rounds(rounds, longest=max(limits)).read(len(limits), num_best=settings.num_best)
    return [SearchResult(hypotheses) for hypotheses in found]


class _Beam:
    """The beam of every sentence still alive, with all that follows its rows."""

    def __init__(
        self,
        settings: BeamSettings,
        sources: Sequence[Sequence[int]],
        phrases: Sequence[Phrases],
        *,
        device: torch.device,
        traced: bool,
    ) -> None:
        limits = [limit_for(settings.max_length, len(source)) for source in sources]
        self.settings, self.longest = settings, max(limits)
        self.constraints = Constraints(
            settings, phrases, limits=limits, width=settings.size, device=device, can_turn_back=True
        )
        rules = self.constraints.rules
        self.has_required = rules is not None and bool(rules.required)
        self.lineage = Lineage(len(sources), settings.size)
        self.tracer = Tracer(len(sources)) if traced else None
        self.alive = torch.arange(len(sources), device=device)
        self.beam = Beam.fresh(self.constraints.limits, settings.size)
        self.source_lengths = torch.tensor([len(source) for source in sources], device=device)
        self.coverage: Tensor | None = None

    @property
    def done(self) -> Tensor:
        return self.beam.done

    def cover(self, attention: Tensor) -> None:
        """Add the attention of this step to what each source token has received."""
        self.coverage = attention if self.coverage is None else self.coverage + attention

    def choose(self, scores: Tensor, step: int) -> tuple[Tensor, Tensor]:
        """The next token of every row and the old row it continues; finished hypotheses are set aside."""
        running = self.beam.running
        if scores.dtype != running.dtype and step == 0:
            self.beam = Beam.fresh(self.beam.limits, self.settings.size, dtype=scores.dtype)
            running = self.beam.running
        masked = self.constraints.mask(scores)
        if self.has_required:
            need, need_after = self.constraints.needs()
            candidates = weigh_required(masked, running, need=need, need_after=need_after)
        else:
            candidates = weigh_best(masked, running)
        chosen = select(
            self.beam,
            candidates,
            length=step + 1,
            penalty=self.settings.length_penalty,
            stop=self.settings.stop,
            extra=self._coverage_of(candidates),
        )
        self.lineage.record(self.alive, chosen.parent, chosen.token, chosen.log_probability)
        if self.tracer is not None:
            self.tracer.record(self.alive, candidates, chosen, done=self.beam.done)
        self.beam = chosen.beam
        return chosen.token.view(-1), chosen.rows

    def _coverage_of(self, candidates: Candidates) -> Tensor | None:
        """The coverage penalty of every candidate, if there is one."""
        if self.coverage is None:
            return None
        columns = torch.arange(self.coverage.shape[1], device=self.coverage.device)
        real = columns < self.source_lengths.repeat_interleave(self.settings.size)[:, None]
        penalty = penalize_coverage(self.coverage, real, beta=self.settings.coverage_penalty)
        return penalty.view(len(self.alive), -1).gather(1, candidates.parent)

    def compact(
        self, tokens: Tensor, index: Tensor, *, tell: Tell | None = None
    ) -> tuple[Tensor, Tensor]:
        """Let the sentences that are done go; the tokens and old rows of the others."""
        size = self.settings.size
        gone, kept = torch.nonzero(self.done)[:, 0], torch.nonzero(~self.done)[:, 0]
        self.lineage.retire(self.alive[gone], self.beam.finished.select(gone))
        if tell is not None:
            for number, hypotheses in self.lineage.read_last(num_best=self.settings.num_best):
                if hypotheses:
                    tell(number, SearchResult(hypotheses))
        self.alive, self.beam = self.alive[kept], self.beam.select(kept)
        self.source_lengths = self.source_lengths[kept]
        self.constraints.keep(kept)
        return tokens.view(-1, size)[kept].view(-1), index.view(-1, size)[kept].view(-1)

    def advance(self, tokens: Tensor, index: Tensor) -> None:
        """The rows move: whatever follows a row follows it to its new place."""
        self.constraints.advance(tokens, index=index)
        if self.coverage is not None:
            self.coverage = self.coverage[index]

    def finish(self) -> list[SearchResult]:
        self.lineage.retire(self.alive, self.beam.finished)
        results = self.lineage.read_back(num_best=self.settings.num_best)
        if not all(results):
            raise UsageError(
                f"no output of sentence {results.index(()) + 1} of the batch can meet all constraints together; "
                "drop a required or a forbidden phrase, or raise max_length",
                f"本批第 {results.index(()) + 1} 句没有任何输出能同时满足全部约束；请减少必需或禁用短语，或调大 max_length",
            )
        traces = [None] * len(results) if self.tracer is None else self.tracer.read()
        return [
            SearchResult(hypotheses, trace)
            for hypotheses, trace in zip(results, traces, strict=True)
        ]
