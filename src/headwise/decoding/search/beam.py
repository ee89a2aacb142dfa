"""Beam search: keep the k best unfinished hypotheses at every step and the k best finished ones.

At step t each of the k rows offers its continuations, log p(y_<t) + log p(w | y_<t). The 2k best of
all k · |V| are considered, which always leaves k that do not end the sentence. Those among the
first k that end the sentence are scored (`length_penalty.py`) and compete for k finished places;
the k best others continue. A sentence stops by its stop rule or at its length limit, where the
hypotheses of the first k ranks are taken as they are.

With the default settings (length_penalty average 1.0, stop likely) this is, token for token,
`generate(num_beams=k)` of transformers 5 with its defaults (length_penalty=1.0,
early_stopping=False; n counts generated tokens, end included; max_length here = max_new_tokens
there). Histories are back-pointers (`back_pointers.py`), so a step copies only what the stepper's
reorder copies.

Tested against `generate`, exhaustive enumeration, a hand-worked tree where greedy search fails,
and: a sentence alone = in any batch.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from headwise.decoding.request_option import RequestOption
from headwise.decoding.results import SearchResult
from headwise.decoding.rules.constraints import Constraints, SentenceRules
from headwise.decoding.search.back_pointers import BackPointers
from headwise.decoding.search.candidates import Candidates, weigh_best
from headwise.decoding.search.length_penalty import (
    AverageLength,
    LengthPenalty,
    StopRule,
    penalize_coverage,
)
from headwise.decoding.search.remembering import RememberingSettings
from headwise.decoding.search.required_phrases import weigh_required
from headwise.decoding.search.selection import Beam, select
from headwise.decoding.trace import Tracer
from headwise.errors import SettingsError, UsageError

MAX_SIZE = 1024


class BeamSettings(RememberingSettings):
    plans: ClassVar[bool] = True
    output_forms: ClassVar[tuple[str, ...]] = ("steps",)
    can_trace: ClassVar[bool] = True
    summary: ClassVar[str] = "The best of several hypotheses."
    request_options: ClassVar[Mapping[str, RequestOption]] = {
        "size": RequestOption(5, low=1, high=8),
        "length_penalty": RequestOption(
            1.0, low=-10, high=10, description="alpha: 0 ignores the length, 1 is the mean"
        ),
    }
    kind: Literal["beam"] = "beam"
    size: int = Field(default=5, ge=1, le=MAX_SIZE)
    """Hypotheses kept at every step."""
    num_best: int = Field(default=1, ge=1, le=MAX_SIZE)
    """Hypotheses returned, best first."""
    length_penalty: LengthPenalty = AverageLength()
    coverage_penalty: float = Field(default=0.0, ge=0)
    """beta of the coverage penalty; needs a model that shows its attention."""
    stop: StopRule = "likely"

    @property
    def num_hypotheses(self) -> int:
        return self.size

    @property
    def needs_attention(self) -> bool:
        return self.coverage_penalty > 0

    def with_request_options(self, options: Mapping[str, Any]) -> Self:
        update = dict(options)
        if "length_penalty" in update:
            update["length_penalty"] = AverageLength(alpha=update["length_penalty"])
        return self.model_copy(update=update)

    def with_num_results(self, count: int, *, may_widen: bool) -> Self | None:
        if count > self.size and not may_widen:
            return None
        return self.model_copy(update={"num_best": count, "size": max(self.size, count)})

    @model_validator(mode="after")
    def _check_best(self) -> "BeamSettings":
        if self.num_best > self.size:
            raise SettingsError(
                f"num_best ({self.num_best}) cannot exceed the beam's size ({self.size}); "
                f"set size={self.num_best} as well (headwise translate: --set "
                f"size={self.num_best}; in a recipe: decoding.size={self.num_best})",
                f"num_best（{self.num_best}）不能超过束宽 size（{self.size}）；"
                f"请同时设 size={self.num_best}（headwise translate：--set size={self.num_best}；"
                f"配方中：decoding.size={self.num_best}）",
            )
        return self


class BeamSearch:
    """The beams of all sentences of a batch (`engines/plain.py` runs it)."""

    def __init__(
        self,
        settings: BeamSettings,
        phrases: Sequence[SentenceRules],
        *,
        source_lengths: Sequence[int],
        limits: Sequence[int],
        device: torch.device,
        traced: bool,
    ) -> None:
        self.settings, self.width, self.longest = settings, settings.size, max(limits)
        self.needs_attention = settings.needs_attention
        self.constraints = Constraints(
            settings, phrases, limits=limits, width=settings.size, device=device, can_turn_back=True
        )
        rules = self.constraints.rules
        self.has_required = rules is not None and bool(rules.required)
        self.back_pointers = BackPointers(len(limits), settings.size)
        self.tracer = Tracer(len(limits)) if traced else None
        self.alive = torch.arange(len(limits), device=device)
        self.beam = Beam.fresh(self.constraints.limits, settings.size)
        self.source_lengths = torch.tensor(source_lengths, device=device)
        self.coverage: Tensor | None = None

    @property
    def done(self) -> Tensor:
        return self.beam.done

    def add_attention(self, attention: Tensor) -> None:
        """Add the attention of this step to what each source token has received."""
        self.coverage = attention if self.coverage is None else self.coverage + attention

    def choose(self, scores: Tensor, step: int) -> tuple[Tensor, Tensor]:
        """The next token of every row and the old row it continues; finished ones are set aside."""
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
        self.back_pointers.record(self.alive, chosen.parent, chosen.token, chosen.log_probability)
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

    def drop_done(
        self,
        tokens: Tensor,
        index: Tensor | None,
        on_result: Callable[[int, SearchResult], None] | None,
    ) -> tuple[Tensor, Tensor]:
        """Drop finished sentences; returns tokens and old rows of the others."""
        assert index is not None
        size = self.settings.size
        gone, kept = torch.nonzero(self.done)[:, 0], torch.nonzero(~self.done)[:, 0]
        self.back_pointers.retire(self.alive[gone], self.beam.finished.select(gone))
        if on_result is not None:
            for number, hypotheses in self.back_pointers.read_last(num_best=self.settings.num_best):
                if hypotheses:
                    on_result(number, SearchResult(hypotheses))
        self.alive, self.beam = self.alive[kept], self.beam.select(kept)
        self.source_lengths = self.source_lengths[kept]
        self.constraints.keep(kept)
        return tokens.view(-1, size)[kept].view(-1), index.view(-1, size)[kept].view(-1)

    def advance(self, tokens: Tensor, index: Tensor | None) -> None:
        """The rows move, and their state with them."""
        assert index is not None
        self.constraints.advance(tokens, index=index)
        if self.coverage is not None:
            self.coverage = self.coverage[index]

    def finish(self) -> list[SearchResult]:
        self.back_pointers.retire(self.alive, self.beam.finished)
        results = self.back_pointers.read_back(num_best=self.settings.num_best)
        if not all(results):
            number = results.index(()) + 1
            raise UsageError(
                f"no output of sentence {number} of the batch can meet all constraints together; "
                "drop a required or a forbidden phrase, or raise max_length",
                f"本批第 {number} 句没有任何输出能同时满足全部约束；"
                "请减少必需或禁用短语，或调大 max_length",
            )
        traces = [None] * len(results) if self.tracer is None else self.tracer.read()
        return [
            SearchResult(hypotheses, trace)
            for hypotheses, trace in zip(results, traces, strict=True)
        ]
