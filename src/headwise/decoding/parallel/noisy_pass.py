"""Translates by noisy parallel decoding: one pass computes many candidates, and another translator
judges which is best.

    candidates   the most likely fertilities and samples of them, or the most probable lengths
    y            the best tokens of each (sequence_pass.py)
    result       the candidate that an autoregressive model finds most probable (noisy.py)

With one candidate, this is one pass. The samples of a sentence follow from the seed and the number
of the sentence, whatever batch it is in. The score of the result is what the judge gave it; the
log-probabilities of its tokens are those of the model.

Gu et al. 2018, *Non-Autoregressive Neural Machine Translation*, section 4.2. Tested against: one
pass if there is one candidate; a judge that prefers a certain length.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import Field

from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.parallel.noisy import Comparison, Judge, choose_candidates
from headwise.decoding.parallel.one_pass import OnePassSettings, propose_lengths
from headwise.decoding.parallel.protocol import SequenceModel
from headwise.decoding.parallel.sequence_pass import Proposals, SequencePass, of_copies
from headwise.decoding.request_option import RequestOption
from headwise.decoding.results import Hypothesis
from headwise.errors import UsageError
from headwise.randomness import torch_generator


class NoisyParallelSettings(GenerationSettings):
    """Several candidates of a parallel model, among which an autoregressive model chooses."""

    output_forms: ClassVar[tuple[str, ...]] = ("positions", "chain", "copies")
    records_passes: ClassVar[bool] = True
    keeps_record: ClassVar[bool] = True
    summary: ClassVar[str] = "Candidates of a parallel model, chosen by an autoregressive one."
    request_options: ClassVar[Mapping[str, RequestOption]] = {
        "samples": RequestOption(10, low=1, high=32, description="candidates of each sentence")
    }
    kind: Literal["noisy_parallel"] = "noisy_parallel"
    samples: int = Field(default=10, ge=1, le=1024)
    """Candidates of each sentence: the most likely fertilities and samples, or so many lengths."""
    temperature: float = Field(default=1.0, gt=0, le=100)
    """Of the samples of fertilities; near 0 all are the most likely ones."""
    judge: str | None = None
    """The bundle of a translator that writes from left to right, of the same languages."""
    comparison: Comparison = "mean"
    """What the judge compares: the mean log-probability of the tokens, or their sum."""
    seed: int = 1

    @property
    def judge_path(self) -> str | None:
        return self.judge

    @property
    def unaided(self) -> OnePassSettings:
        return OnePassSettings(max_length=self.max_length, min_length=self.min_length)

    def check_complete(self) -> None:
        if self.judge is None:
            raise UsageError(
                "decoding.kind=noisy_parallel has no judge, which chooses among the candidates; "
                "give the bundle of a translator that writes from left to right "
                "(decoding.judge=runs/teacher/model), or use decoding.kind=one_pass",
                "decoding.kind=noisy_parallel 缺少在候选中作选择的评判模型；请给出从左到右翻译的"
                "模型目录（decoding.judge=runs/teacher/model），或用 decoding.kind=one_pass",
            )


class NoisyPass(SequencePass):
    def __init__(self, model: SequenceModel, judge: Judge) -> None:
        super().__init__(model)
        self.judge = judge

    def propose(
        self,
        memory: Any,
        limits: Sequence[int],
        settings: GenerationSettings,
        numbers: Sequence[int],
    ) -> Proposals:
        assert isinstance(settings, NoisyParallelSettings)
        shortest = settings.min_length + 1
        if not self.model.copies_by_fertility:
            return Proposals(
                *propose_lengths(
                    self.model, memory, limits, count=settings.samples, shortest=shortest
                )
            )
        copies = self.model.sampled_copies(
            memory,
            least=[shortest] * len(limits),
            most=limits,
            count=settings.samples,
            temperature=settings.temperature,
            generators=[torch_generator(settings.seed, "fertility", one) for one in numbers],
        )
        return of_copies(copies)

    def choose(
        self,
        sources: Sequence[Sequence[int]],
        found: Sequence[Sequence[Hypothesis]],
        settings: GenerationSettings,
    ) -> list[tuple[int, Hypothesis]]:
        assert isinstance(settings, NoisyParallelSettings)
        chosen = choose_candidates(
            sources,
            [[one.tokens for one in hypotheses] for hypotheses in found],
            judge=self.judge,
            comparison=settings.comparison,
        )
        return [
            (one.number, replace(hypotheses[one.number], score=one.score))
            for hypotheses, one in zip(found, chosen, strict=True)
        ]
