"""`decoding: {kind: drafted}`: greedy search that verifies several drafted tokens in one pass.

    decoding: {kind: drafted, drafter: {kind: heads}, block: 4}
    decoding: {kind: drafted, drafter: {kind: jacobi}, accept: {kind: relaxed, top: 3, gap: 1.0}}

In fp32 the output is greedy search's, token for token, for every drafter (`rounds.py`). In lower
precision the order of sums differs between one token and a block, so that nearly tied tokens may be
decided differently. A model can be asked whose stepper declares `verifies_drafts`; others are
refused with what works instead.
Tested through the translator, the server and the command line.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, cast

from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from headwise.decoding.drafting.acceptance import AcceptanceSettings, ExactAcceptance
from headwise.decoding.drafting.block_rules import make_rules
from headwise.decoding.drafting.choices import DrafterSettings, make_drafter
from headwise.decoding.drafting.heads import HeadsDrafterSettings, check_heads
from headwise.decoding.drafting.jacobi import JacobiDrafterSettings
from headwise.decoding.drafting.parallel import ParallelDrafterSettings, check_draft_decoder
from headwise.decoding.drafting.protocol import DraftedRow, VerifyingStepper
from headwise.decoding.drafting.rounds import run_rounds
from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.generator import NO_WATCHER, Generator, Watcher
from headwise.decoding.out_of_memory import explaining_memory
from headwise.decoding.request_option import RequestOption
from headwise.decoding.results import EMPTY_RESULT, SearchResult
from headwise.decoding.rules.constraints import SentenceRules
from headwise.decoding.rules.honoured_rules import ALL_RULES, Rule
from headwise.decoding.rules.length_limit import limit_for
from headwise.decoding.stepper import capabilities_of
from headwise.decoding.stepper_search import Steppers, StepperSearch, renumber, rules_of_each
from headwise.errors import UsageError


class DraftedSettings(GenerationSettings):
    output_forms: ClassVar[tuple[str, ...]] = ("steps",)
    keeps_record: ClassVar[bool] = True
    summary: ClassVar[str] = "Greedy search that verifies several drafted tokens in one pass."
    request_options: ClassVar[Mapping[str, RequestOption]] = {
        "block": RequestOption(4, low=1, high=16, description="tokens drafted in a round")
    }
    kind: Literal["drafted"] = "drafted"
    drafter: DrafterSettings = JacobiDrafterSettings()
    """Where the drafts come from."""
    block: int = Field(default=4, ge=1, le=64)
    """Tokens drafted in a round, at most."""
    accept: AcceptanceSettings = ExactAcceptance()
    """Which drafts are accepted; `exact` writes what greedy search writes."""

    @property
    def num_heads(self) -> int:
        """Draft heads that the model must have."""
        return self.block if isinstance(self.drafter, HeadsDrafterSettings) else 0

    @property
    def num_guessed(self) -> int:
        """Tokens that the model's draft decoder must guess at once."""
        return self.block if isinstance(self.drafter, ParallelDrafterSettings) else 0


class DraftedSearch(Generator):
    """Draft and verify over the steppers of a model."""

    honours: ClassVar[frozenset[Rule]] = ALL_RULES - {"required"}

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
        assert isinstance(settings, DraftedSettings)
        each = rules_of_each(settings, rules, len(sources))
        stepper = self._verifying_stepper(settings)
        filled = [number for number, source in enumerate(sources) if len(source)]
        results = [EMPTY_RESULT] * len(sources)
        if filled:
            here, own = [sources[i] for i in filled], [each[i] for i in filled]
            found = _generate(
                stepper, here, settings, own, renumber(watcher, filled), traced=traced
            )
            for i, result in zip(filled, found, strict=True):
                results[i] = result
        return results

    def _verifying_stepper(self, settings: DraftedSettings) -> VerifyingStepper:
        stepper: Any = self._steppers.stepper(attending=False)
        if not capabilities_of(stepper).verifies_drafts:
            raise UsageError(
                "decoding.kind=drafted needs a model that scores several tokens in one pass, and "
                "this one cannot: that takes a Transformer with full or fused attention in its "
                "decoder; use decoding.kind=greedy",
                "decoding.kind=drafted 需要能一次为多个词元打分的模型，而该模型不能："
                "需要解码器使用全注意力或融合注意力的 Transformer；请用 decoding.kind=greedy",
            )
        verifying = cast("VerifyingStepper", stepper)
        if settings.num_heads:
            check_heads(verifying.num_draft_heads, settings.num_heads)
        if settings.num_guessed:
            check_draft_decoder(verifying.draft_block, settings.num_guessed)
        return verifying

    def read(
        self,
        sources: Sequence[Sequence[int]],
        target: Sequence[int],
        *,
        before_step: Callable[[], None] | None = None,
    ) -> Iterator[Float[Tensor, "source vocab"]]:
        return StepperSearch(self._steppers).read(sources, target, before_step=before_step)


def _generate(
    stepper: VerifyingStepper,
    sources: Sequence[Sequence[int]],
    settings: DraftedSettings,
    rules: Sequence[SentenceRules],
    watcher: Watcher,
    *,
    traced: bool,
) -> list[SearchResult]:
    """One batch without empty sources."""
    rows = [
        DraftedRow(number, source, limit_for(settings.max_length, len(source)), one.prefix)
        for number, (source, one) in enumerate(zip(sources, rules, strict=True))
    ]
    longest = max(row.limit for row in rows)
    with explaining_memory(settings, num_sentences=len(rows), longest=longest):
        verifier = stepper.make_verifier(sources, max_length=longest, block=settings.block + 1)
        return run_rounds(
            verifier,
            make_drafter(settings.drafter, verifier),
            rows,
            rules=make_rules(settings, rules, rows, verifier.device),
            accept=settings.accept,
            block=settings.block,
            watcher=watcher,
            traced=traced,
        )
