"""Chooses the engine that runs a search over a stepper.

    recorded      the stepper has static buffers, no rule looks at the history of a row, and samples
                  are drawn without cuts
    continuous    sentences enter while others are generated (requested by the server)
    plain         everything else

The choice depends on what the stepper declares (`stepper.Capabilities`) and on what the search
needs. Results do not depend on it.
Tested: every engine against the plain one, with fakes and with models.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Protocol, cast

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.decoding.engines.continuous import ContinuousStepper, looks_back, run_continuously
from headwise.decoding.engines.plain import PlainSearch, run_plainly
from headwise.decoding.engines.recorded import RecordedSearch, StaticStepper, run_recorded
from headwise.decoding.engines.recorded_beam import record_beam
from headwise.decoding.engines.recorded_paths import record_paths
from headwise.decoding.engines.recorded_samples import record_samples
from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.generator import NO_WATCHER, Arrival, Generator, NextArrivals, Watcher
from headwise.decoding.out_of_memory import explaining_memory
from headwise.decoding.results import EMPTY_RESULT, SearchResult
from headwise.decoding.rules.constraints import SentenceRules
from headwise.decoding.rules.honoured_rules import ALL_RULES, Rule
from headwise.decoding.rules.length_limit import limit_for
from headwise.decoding.search.beam import BeamSearch, BeamSettings
from headwise.decoding.search.greedy import GreedySettings, choose_best
from headwise.decoding.search.paths import PathSearch
from headwise.decoding.search.sampling import SamplingSettings, draw_all, make_sampler
from headwise.decoding.stepper import Stepper, capabilities_of
from headwise.errors import UsageError
from headwise.text.tokenizer import BOS


class Steppers(Protocol):
    """The steppers of one model."""

    def stepper(self, *, attending: bool) -> Stepper[Any]:
        """A stepper; with `attending`, one that keeps the attention of its last step."""
        ...


class StepperSearch(Generator):
    """Greedy search, beam search and sampling over the steppers of a model."""

    honours: ClassVar[frozenset[Rule]] = ALL_RULES

    def __init__(self, steppers: Steppers) -> None:
        self._steppers = steppers

    def generate_batch(
        self,
        sources: Sequence[Sequence[int]],
        settings: GenerationSettings,
        rules: SentenceRules | Sequence[SentenceRules] | None = None,
        *,
        numbers: Sequence[int] | None = None,
        traced: bool = False,
        watcher: Watcher = NO_WATCHER,
    ) -> list[SearchResult]:
        return decode(
            self._steppers.stepper(attending=settings.needs_attention),
            sources,
            settings,
            phrases=rules,
            sentence_numbers=numbers,
            traced=traced,
            watcher=watcher,
        )

    def read(
        self,
        sources: Sequence[Sequence[int]],
        target: Sequence[int],
        *,
        before_step: Callable[[], None] | None = None,
    ) -> Iterator[Float[Tensor, "source vocab"]]:
        stepper = self._steppers.stepper(attending=False)
        state = stepper.start(sources, width=1, max_length=len(target) + 1)
        for token in (BOS, *target):
            if before_step is not None:
                before_step()
            tokens = torch.full((len(sources),), token, device=stepper.device)
            scores, state = stepper.step(state, tokens)
            yield scores

    def can_join(self, settings: GenerationSettings) -> bool:
        if not isinstance(settings, GreedySettings) or looks_back(settings):
            return False
        return capabilities_of(self._steppers.stepper(attending=False)).runs_continuously

    def generate_continuously(
        self, first: Sequence[Arrival], settings: GenerationSettings, more: NextArrivals
    ) -> None:
        stepper = cast("ContinuousStepper", self._steppers.stepper(attending=False))
        run_continuously(stepper.make_continuous(), first, settings, more)


def decode(
    stepper: Stepper[Any],
    sources: Sequence[Sequence[int]],
    settings: GenerationSettings,
    *,
    phrases: SentenceRules | Sequence[SentenceRules] | None = None,
    sentence_numbers: Sequence[int] | None = None,
    traced: bool = False,
    watcher: Watcher = NO_WATCHER,
) -> list[SearchResult]:
    """Decode one batch with one stepper (`Generator.generate`); empty sources ask no model."""
    rules = rules_of_each(settings, phrases, len(sources))
    numbers = range(len(sources)) if sentence_numbers is None else sentence_numbers
    _check(stepper, settings, traced=traced)
    filled = [i for i, source in enumerate(sources) if len(source)]
    results = [EMPTY_RESULT] * len(sources)
    if filled:
        batch = _BatchSearch(
            [sources[i] for i in filled],
            settings,
            [rules[i] for i in filled],
            numbers=[numbers[i] for i in filled],
            traced=traced,
        )
        with explaining_memory(settings, num_sentences=len(filled), longest=max(batch.limits)):
            found = batch.run(stepper, renumber(watcher, filled))
        for i, result in zip(filled, found, strict=True):
            results[i] = result
    return results


class _BatchSearch:
    """The non-empty sentences of a batch, and the search for them."""

    def __init__(
        self,
        sources: Sequence[Sequence[int]],
        settings: GenerationSettings,
        rules: Sequence[SentenceRules],
        *,
        numbers: Sequence[int],
        traced: bool,
    ) -> None:
        self.sources, self.settings, self.rules = sources, settings, rules
        self.numbers, self.traced = numbers, traced
        self.limits = [limit_for(settings.max_length, len(source)) for source in sources]

    def run(self, stepper: Stepper[Any], watcher: Watcher) -> list[SearchResult]:
        if self._can_be_recorded(stepper, watcher):
            search = self._make_recorded(cast("StaticStepper", stepper))
            return [SearchResult(found) for found in run_recorded(search, self.limits)]
        return run_plainly(stepper, self.sources, self._make_plain(stepper.device), watcher)

    def _can_be_recorded(self, stepper: Stepper[Any], watcher: Watcher) -> bool:
        settings = self.settings
        needs_plain_steps = (
            self.traced
            or watcher.on_tokens is not None
            or settings.needs_attention
            or settings.no_repeat_ngrams
            or any(one.rules is not None or one.prefix for one in self.rules)
        )
        has_recorded_form = isinstance(settings, GreedySettings | BeamSettings) or (
            isinstance(settings, SamplingSettings) and settings.has_no_cuts
        )
        return (
            has_recorded_form
            and not needs_plain_steps
            and capabilities_of(stepper).has_static_buffers
        )

    @torch.no_grad()
    def _make_recorded(self, stepper: StaticStepper) -> RecordedSearch:
        settings = self.settings
        buffers = stepper.fill_buffers(
            self.sources, width=settings.num_hypotheses, max_length=max(self.limits)
        )
        if isinstance(settings, BeamSettings):
            return record_beam(settings, buffers)
        if isinstance(settings, SamplingSettings):
            search = record_samples(settings, buffers)
            search.give(draw_all(settings, self.numbers, num_steps=max(self.limits)))
            return search
        return record_paths(settings, buffers)

    def _make_plain(self, device: torch.device) -> PlainSearch:
        settings, limits = self.settings, self.limits
        match settings:
            case BeamSettings():
                return BeamSearch(
                    settings,
                    self.rules,
                    source_lengths=[len(source) for source in self.sources],
                    limits=limits,
                    device=device,
                    traced=self.traced,
                )
            case SamplingSettings():
                choose = make_sampler(settings, self.numbers, longest=max(limits), device=device)
                return PathSearch(settings, self.rules, choose, limits=limits, device=device)
            case _:
                return PathSearch(settings, self.rules, choose_best, limits=limits, device=device)


def renumber(watcher: Watcher, filled: Sequence[int]) -> Watcher:
    """The same watcher, but sentences are numbered among all sources, empty ones included."""
    on_result = watcher.on_result
    if on_result is None:
        return watcher
    return Watcher(
        watcher.before_step, watcher.on_tokens, lambda i, result: on_result(filled[i], result)
    )


def _check(stepper: Stepper[Any], settings: GenerationSettings, *, traced: bool) -> None:
    if traced and not settings.can_trace:
        kind = getattr(settings, "kind", "")
        raise UsageError(
            f"a trace of the search was asked of {kind} decoding, which has no tree; "
            "use decoding.kind=beam",
            f"{kind} 解码没有搜索树可供记录；请使用 decoding.kind=beam",
        )
    if settings.needs_attention and not capabilities_of(stepper).shows_attention:
        raise UsageError(
            "coverage_penalty is set but this model does not show its attention; set "
            "decoding.coverage_penalty=0",
            "设置了 coverage_penalty，但该模型不提供注意力；请设 decoding.coverage_penalty=0",
        )


def rules_of_each(
    settings: GenerationSettings,
    phrases: SentenceRules | Sequence[SentenceRules] | None,
    num_sources: int,
) -> Sequence[SentenceRules]:
    """One entry for each source."""
    if phrases is None:
        if settings.forbidden or settings.required or settings.prefix:
            raise UsageError(
                "the settings hold phrases as text but they were not made ready; pass "
                "phrases=encode_phrases(settings, tokenizer)",
                "设置中含有文本短语，但尚未转换；请传入 phrases=encode_phrases(settings, "
                "tokenizer)",
            )
        return [SentenceRules()] * num_sources
    each = [phrases] * num_sources if isinstance(phrases, SentenceRules) else phrases
    if len(each) != num_sources:
        raise UsageError(
            f"phrases were given for {len(each)} sentences, but there are {num_sources}; give one "
            "entry per sentence",
            f"给出了 {len(each)} 句的短语，但有 {num_sources} 句；请每句给一项",
        )
    return each
