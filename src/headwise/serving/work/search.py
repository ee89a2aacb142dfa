"""A search over sentences of several requests: as a batch, or as a flow that others enter while it
runs.

    batch    all begin together; who is done is told, and left out when a quarter is (`decoding/choices.py`)
    flow     who comes while it runs takes the place of who is done (`decoding/engines/continuous.py`): greedy search, on a CPU

Between two steps it is asked whether anyone still waits. Samples are drawn by the number of the
sentence in its request: neighbours change nothing. Tested: = the translator itself, alone and in
company.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headwise.decoding.choices import DecodingSettings
from headwise.decoding.generator import Arrival, Watcher
from headwise.decoding.results import SearchResult
from headwise.decoding.rules.constraints import SentenceRules
from headwise.decoding.rules.phrases import rules_of
from headwise.decoding.rules.text_rules import TextRules
from headwise.serving.work.jobs import Abandoned, More, Part, nobody_waits
from headwise.tasks.translation.translator import Translator

Watch = Callable[[Sequence[int]], None]
"""Is shown the tokens of the best hypothesis at every step."""


@dataclass(frozen=True)
class Sentence:
    """What the search is told of a sentence."""

    ids: tuple[int, ...]
    prefix: tuple[int, ...]
    number: int


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
        if self.watch is not None:
            return False
        return self.translator.generator(self.settings).can_join(self.settings)

    def flow(self, parts: Sequence[Part], more: More) -> None:
        """Answer parts, and those that come meanwhile."""
        self.translator.generator(self.settings).generate_continuously(
            [self._arrive(part) for part in parts],
            self.settings,
            lambda alive: [self._arrive(part) for part in more(alive)],
        )

    def _arrive(self, part: Part) -> Arrival:
        sentence: Sentence = part.argument

        def tell(result: SearchResult) -> None:
            if part.order is not None:
                part.order.deliver(part, self.read(result))

        return Arrival(sentence.ids, tell, sentence.prefix, is_over=lambda: part.is_over)

    def __call__(self, parts: Sequence[Part]) -> list[Any]:
        sentences: list[Sentence] = [part.argument for part in parts]
        told: dict[int, Any] = {}

        def tell(number: int, result: SearchResult) -> None:
            """Short sentences do not wait for the long ones of their batch, and their clients ask
            again meanwhile.
            """
            told[number] = self.read(result)
            order = parts[number].order
            if order is not None:
                order.deliver(parts[number], told[number])

        results = self.translator.generator(self.settings).generate(
            [sentence.ids for sentence in sentences],
            self.settings,
            [SentenceRules(sentence.prefix, self.rules) for sentence in sentences],
            numbers=[sentence.number for sentence in sentences],
            watcher=Watcher(stop_if(lambda: nobody_waits(parts)), self.watch, tell),
        )
        return [told.get(number) or self.read(result) for number, result in enumerate(results)]

    def read(self, result: SearchResult) -> Any:
        """What a part is answered with."""
        return tuple(self.translator.write_down(one) for one in result.hypotheses)


def stop_if(is_over: Callable[[], bool]) -> Callable[[], None]:
    """What is called before every step of a search: it stops the search when nobody waits for it."""

    def stop() -> None:
        if is_over():
            raise Abandoned

    return stop
