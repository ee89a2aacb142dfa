"""`Generator`: token sequences in, hypotheses out. Code outside this folder knows only this class.

    results = generator.generate(sources, settings, rules)

Search over a stepper is one generator (`stepper_search.py`). A decoder that writes all tokens at
once, or refines them in rounds, is another: it subclasses `Generator` and gets a case in
`choices.py`. A generator declares the rules that it follows, such as forbidden phrases; `generate`
refuses all others.
Tested: a kind that writes all words at once is added to a copy of the library and passes through
translator, server, evaluation and the page's trace.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.results import SearchResult
from headwise.decoding.rules.constraints import SentenceRules
from headwise.decoding.rules.honoured_rules import Rule, refuse_unsupported


@dataclass(frozen=True)
class Watcher:
    """Callbacks during the generation of a batch. Results do not depend on them."""

    before_step: Callable[[], None] | None = None
    """Called before every step; to stop the work, it raises an exception."""
    on_tokens: Callable[[Sequence[int]], None] | None = None
    """Called before every step with the best hypothesis of the first sentence so far."""
    on_result: Callable[[int, SearchResult], None] | None = None
    """Called with the number and the result of a sentence that is done before the others.

    All results are returned in the end as well.
    """


NO_WATCHER = Watcher()


@dataclass(frozen=True)
class Arrival:
    """A sentence that enters while others are generated."""

    source: Sequence[int]
    on_result: Callable[[SearchResult], None]
    prefix: tuple[int, ...] = ()
    is_over: Callable[[], bool] = lambda: False
    """Whether nobody waits for the result any more."""


NextArrivals = Callable[[int], Sequence[Arrival]]
"""Given how many sentences are being generated, those that enter now."""


class Generator(ABC):
    """A model together with a way to generate from it."""

    honours: ClassVar[frozenset[Rule]] = frozenset()
    """The rules that are followed; a request with any other is refused. Every generator keeps
    `max_length`."""

    def generate(
        self,
        sources: Sequence[Sequence[int]],
        settings: GenerationSettings,
        rules: SentenceRules | Sequence[SentenceRules] | None = None,
        *,
        numbers: Sequence[int] | None = None,
        traced: bool = False,
        watcher: Watcher = NO_WATCHER,
    ) -> list[SearchResult]:
        """Generate one batch; results come in the order of the sources.

        `rules` hold for all sentences or name one entry per sentence. `numbers` (0, 1, … by
        default) name the sentences to the random generator. `traced` keeps what was considered at
        each step. Rules that this generator does not follow are refused.
        """
        refuse_unsupported(settings, rules, honoured=self.honours)
        return self.generate_batch(
            sources, settings, rules, numbers=numbers, traced=traced, watcher=watcher
        )

    @abstractmethod
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
        """The work of `generate`; `traced` is asked for only of settings that declare
        `can_trace`, `records_passes` or `keeps_record`.
        """

    @abstractmethod
    def read(
        self,
        sources: Sequence[Sequence[int]],
        target: Sequence[int],
        *,
        before_step: Callable[[], None] | None = None,
    ) -> Iterator[Float[Tensor, "source vocab"]]:
        """Log-probabilities at every position of a given target and at its end, by source."""

    def can_join(self, settings: GenerationSettings) -> bool:
        """Whether `generate_continuously` works with these settings and with any prefix."""
        return False

    def generate_continuously(
        self, first: Sequence[Arrival], settings: GenerationSettings, more: NextArrivals
    ) -> None:
        """Generate for these arrivals and for those that enter meanwhile, until none is left."""
        raise NotImplementedError(f"{type(self).__name__} generates in batches only")
