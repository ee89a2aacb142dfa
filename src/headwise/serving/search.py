"""A search over sentences of several requests: as a batch, or as a flow that others enter while it runs.

    batch    all begin together; who is done is told, and left out when a quarter is (`decoding/choices.py`)
    flow     who comes while it runs takes the place of who is done (`decoding/flow.py`): greedy search, on a CPU

Between two steps it is asked whether anyone still waits. Samples are drawn by the number of the sentence in its request: neighbours
change nothing. Tested: = the translator itself, alone and in company.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from headwise.decoding.choices import DecodingSettings, decode
from headwise.decoding.constraints import Phrases
from headwise.decoding.flow import Arrival, can_flow, flow_greedily
from headwise.decoding.greedy import GreedySettings
from headwise.decoding.phrases import rules_of
from headwise.decoding.results import SearchResult
from headwise.decoding.stepping import AttendingStepper, Room, RoomyStepper, Stepper
from headwise.decoding.text_rules import TextRules
from headwise.models.steppers import flows, make_flow
from headwise.serving.orders import Abandoned, More, Part, nobody_waits
from headwise.tasks.translator import Translator
from headwise.text.occurrence import on_one_line

Watch = Callable[[Sequence[int]], None]
"""Is shown the tokens of the best hypothesis at every step."""


@dataclass(frozen=True)
class Sentence:
    """What the search is told of a sentence."""

    ids: tuple[int, ...]
    prefix: tuple[int, ...]
    number: int


@dataclass(frozen=True)
class Found:
    """One of the n best of a sentence."""

    text: str
    score: float
    log_probability: float
    is_whole: bool
    """False if the length limit cut it."""


@dataclass(frozen=True)
class Search:
    """Answers parts that share their settings."""

    translator: Translator
    settings: DecodingSettings
    watch: Watch | None = None

    @cached_property
    def rules(self) -> TextRules | None:
        """Of the forbidden and required phrases."""
        return rules_of(
            self.translator.tokenizers.target, self.settings.forbidden, self.settings.required
        )

    @property
    def flows(self) -> bool:
        """Whether `flow` may be asked for."""
        if self.watch is not None or not can_flow(self.settings):
            return False
        return flows(self.translator.stepper(attending=False))

    def flow(self, parts: Sequence[Part], more: More) -> None:
        """Answer parts, and those that come meanwhile."""
        flow = make_flow(self.translator.stepper(attending=False))
        assert flow is not None
        assert isinstance(self.settings, GreedySettings)
        first = [self._arrive(part) for part in parts]
        flow_greedily(
            flow,
            first,
            self.settings,
            more=lambda alive: [self._arrive(part) for part in more(alive)],
        )

    def _arrive(self, part: Part) -> Arrival:
        sentence: Sentence = part.argument

        def tell(result: SearchResult) -> None:
            if part.order is not None:
                part.order.deliver(part, self.read(result))

        return Arrival(sentence.ids, tell, sentence.prefix, is_over=lambda: part.is_over)

    def __call__(self, parts: Sequence[Part]) -> list[Any]:
        attending = getattr(self.settings, "coverage_penalty", 0.0) > 0
        inner = self.translator.stepper(attending=attending)
        kind = WatchedAttendingStepper if attending else WatchedStepper
        stepper = kind(inner, is_over=lambda: nobody_waits(parts), watch=self.watch)
        sentences: list[Sentence] = [part.argument for part in parts]
        told: dict[int, Any] = {}

        def tell(number: int, result: SearchResult) -> None:
            """Short sentences do not wait for the long ones of their batch, and their clients ask again meanwhile."""
            told[number] = self.read(result)
            order = parts[number].order
            if order is not None:
                order.deliver(parts[number], told[number])

        results = decode(
            stepper,
            [sentence.ids for sentence in sentences],
            self.settings,
            phrases=[Phrases(sentence.prefix, self.rules) for sentence in sentences],
            sentence_numbers=[sentence.number for sentence in sentences],
            tell=tell,
        )
        return [told.get(number) or self.read(result) for number, result in enumerate(results)]

    def read(self, result: SearchResult) -> Any:
        """What a part is answered with."""
        return tuple(
            write_down(
                self.translator, one.tokens, one.score, one.log_probability, is_whole=one.finished
            )
            for one in result.hypotheses
        )


def write_down(
    translator: Translator,
    tokens: Sequence[int],
    score: float,
    log_probability: float,
    *,
    is_whole: bool,
) -> Found:
    """A hypothesis as text."""
    return Found(
        on_one_line(translator.tokenizers.target.decode(tokens)),
        score,
        log_probability,
        is_whole=is_whole,
    )


class WatchedStepper:
    """A stepper that asks between two steps whether anyone still waits, and shows the first row as it grows."""

    def __init__(
        self, inner: Stepper[Any], *, is_over: Callable[[], bool], watch: Watch | None = None
    ) -> None:
        self.inner, self._is_over, self._watch = inner, is_over, watch
        self._histories: list[tuple[int, ...]] = []

    @property
    def device(self) -> torch.device:
        return self.inner.device

    def start(self, sources: Sequence[Sequence[int]], *, width: int, max_length: int) -> Any:
        self._histories = [()] * (len(sources) * width)
        return self.inner.start(sources, width=width, max_length=max_length)

    def step(self, state: Any, tokens: Tensor) -> tuple[Tensor, Any]:
        if self._is_over():
            raise Abandoned
        if self._watch is not None:
            self._histories = [
                (*past, token) for past, token in zip(self._histories, tokens.tolist(), strict=True)
            ]
            self._watch(self._histories[0][1:])
        return self.inner.step(state, tokens)

    def reorder(self, state: Any, index: Tensor) -> Any:
        if self._watch is not None:
            self._histories = [self._histories[row] for row in index.tolist()]
        return self.inner.reorder(state, index)

    def enter(
        self, sources: Sequence[Sequence[int]], *, width: int, max_length: int
    ) -> Room | None:
        """Rooms are a GPU's: there a whole search is shorter than the patience of a client."""
        if self._watch is not None or not isinstance(self.inner, RoomyStepper):
            return None
        return self.inner.enter(sources, width=width, max_length=max_length)


class WatchedAttendingStepper(WatchedStepper):
    """The same for searches that look at the attention (coverage penalty)."""

    def attention(self, state: Any) -> Tensor:
        assert isinstance(self.inner, AttendingStepper)
        return self.inner.attention(state)
