"""Translates sentences of several requests together, as a batch or with continuous batching.

    batch         all sentences start together; a finished one is reported at once, and finished
                  rows are removed when they are a quarter of the batch (`decoding/choices.py`)
    continuous    greedy search on a CPU: an arriving sentence takes the row of a finished one
                  (`decoding/engines/continuous.py`)

Between two steps the search checks whether anyone still waits. The random numbers of sampling
depend on the number of the sentence in its request, so other sentences of the batch do not change a
result. Tested: = the translator itself, alone and in a batch.
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
from headwise.serving.work.jobs import JobAbandoned, JobPart, JoinMore, should_stop
from headwise.tasks.translation.translator import Translator

Watch = Callable[[Sequence[int]], None]
"""Gets the tokens of the best hypothesis at every step."""


@dataclass(frozen=True)
class EncodedSentence:
    """One sentence as token ids."""

    ids: tuple[int, ...]
    prefix: tuple[int, ...]
    number: int


@dataclass(frozen=True)
class Search:
    """Translates parts that share their settings."""

    translator: Translator
    settings: DecodingSettings
    watch: Watch | None = None

    @cached_property
    def rules(self) -> TextRules | None:
        """Rules for the forbidden and required phrases."""
        return rules_of(
            self.translator.tokenizers.target, self.settings.forbidden, self.settings.required
        )

    @property
    def can_run_continuously(self) -> bool:
        """Whether `run_continuously` is possible."""
        if self.watch is not None:
            return False
        return self.translator.generator(self.settings).can_join(self.settings)

    def run_continuously(self, parts: Sequence[JobPart], more: JoinMore) -> None:
        """Translate parts, and those that arrive meanwhile."""
        self.translator.generator(self.settings).generate_continuously(
            [self._arrive(part) for part in parts],
            self.settings,
            lambda alive: [self._arrive(part) for part in more(alive)],
        )

    def _arrive(self, part: JobPart) -> Arrival:
        sentence: EncodedSentence = part.argument

        def report(result: SearchResult) -> None:
            if part.job is not None:
                part.job.deliver(part, self.read(result))

        return Arrival(sentence.ids, report, sentence.prefix, is_over=lambda: part.is_over)

    def __call__(self, parts: Sequence[JobPart]) -> list[Any]:
        sentences: list[EncodedSentence] = [part.argument for part in parts]
        found: dict[int, Any] = {}

        def report(number: int, result: SearchResult) -> None:
            """Report a finished sentence at once: short sentences do not wait for long ones."""
            found[number] = self.read(result)
            job = parts[number].job
            if job is not None:
                job.deliver(parts[number], found[number])

        results = self.translator.generator(self.settings).generate(
            [sentence.ids for sentence in sentences],
            self.settings,
            [SentenceRules(sentence.prefix, self.rules) for sentence in sentences],
            numbers=[sentence.number for sentence in sentences],
            watcher=Watcher(stop_if(lambda: should_stop(parts)), self.watch, report),
        )
        return [found.get(number) or self.read(result) for number, result in enumerate(results)]

    def read(self, result: SearchResult) -> Any:
        """The result of a part."""
        return tuple(self.translator.write_down(one) for one in result.hypotheses)


def stop_if(is_over: Callable[[], bool]) -> Callable[[], None]:
    """A function to be called before every step of a search: stops the search when nobody waits."""

    def stop() -> None:
        if is_over():
            raise JobAbandoned

    return stop
