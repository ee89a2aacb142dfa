"""Mask-Predict: predict all words at once, then mask the least probable ones and predict them anew.

With N words and T passes, pass 0 predicts all N words. Pass t = 1 … T-1 masks the

    n_t = floor(N · (T - t) / T)

words of lowest probability and predicts them again, given the others. A word that stays keeps the
probability with which it was predicted; it is not judged again. A pass with n_t = 0 would change
nothing and is left out (short sentences). With T = 1 this is one pass: argmax at each position.

The number of words must be known before; several lengths are tried as candidates, side by side
(one_pass.py has this part, which both kinds share).

Paper: Ghazvininejad et al. 2019, "Mask-Predict" (arXiv 1904.09324); the original masks at least one
word in each pass. Tested against: T = 1 is one_pass, the numbers of masked words are those of the
formula, a Python program for one sentence, and: a sentence alone = in any batch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.parallel.excluded_tokens import exclude
from headwise.decoding.parallel.protocol import PartialTargets
from headwise.decoding.request_option import RequestOption
from headwise.decoding.results import WrittenPass
from headwise.errors import SettingsError
from headwise.text.tokenizer import PAD

MAX_PASSES = 1024
MAX_LENGTHS = 64


class MaskPredictSettings(GenerationSettings):
    """All words at once; the least probable ones are predicted again, given the others."""

    output_forms: ClassVar[tuple[str, ...]] = ("positions",)
    records_passes: ClassVar[bool] = True
    keeps_record: ClassVar[bool] = True
    summary: ClassVar[str] = "All words at once; the least probable ones are predicted again."
    request_options: ClassVar[Mapping[str, RequestOption]] = {
        "passes": RequestOption(10, low=1, high=50),
        "lengths": RequestOption(5, low=1, high=16, description="lengths that are tried"),
    }
    kind: Literal["mask_predict"] = "mask_predict"
    passes: int = Field(default=10, ge=1, le=MAX_PASSES)
    """How often the decoder runs; 1 predicts all words independently of each other."""
    lengths: int = Field(default=5, ge=1, le=MAX_LENGTHS)
    """Lengths that are tried for each sentence; the candidate with the largest mean log-probability
    is taken."""
    num_best: int = Field(default=1, ge=1, le=MAX_LENGTHS)
    """Hypotheses returned, best first; each has another length."""

    @property
    def num_hypotheses(self) -> int:
        return self.lengths

    def with_num_results(self, count: int, *, may_widen: bool) -> Self | None:
        if count > self.lengths and not may_widen:
            return None
        return self.model_copy(update={"num_best": count, "lengths": max(self.lengths, count)})

    def with_request_options(self, options: Mapping[str, Any]) -> Self:
        changed = self.model_copy(update=dict(options))
        return changed.model_copy(update={"num_best": min(changed.num_best, changed.lengths)})

    @model_validator(mode="after")
    def _check_best(self) -> "MaskPredictSettings":
        if self.num_best > self.lengths:
            raise SettingsError(
                f"num_best ({self.num_best}) cannot exceed the number of lengths tried "
                f"({self.lengths}); set lengths={self.num_best} as well",
                f"num_best（{self.num_best}）不能超过所试的长度数 lengths（{self.lengths}）；"
                f"请同时设 lengths={self.num_best}",
            )
        return self


@dataclass(frozen=True)
class CandidatePass:
    """All candidates after one pass, still on the device."""

    tokens: Int[Tensor, "candidate position"]
    masked: Bool[Tensor, "candidate position"]
    """The words that this pass predicted."""
    confidence: Float[Tensor, "candidate position"]
    """The log-probability of each word, when it was predicted."""


Count = TypeVar("Count", int, Tensor)


def num_masked(num_words: Count, *, number: int, num_passes: int) -> Count:
    """How many words pass `number` (0, 1, …) predicts, of one candidate or of each."""
    return num_words * (num_passes - number) // num_passes


def least_probable(
    confidence: Float[Tensor, "candidate position"],
    may_mask: Bool[Tensor, "candidate position"],
    count: Int[Tensor, " candidate"],
) -> Bool[Tensor, "candidate position"]:
    """The `count` least probable words of each candidate; of equal ones, those further left."""
    order = confidence.masked_fill(~may_mask, float("inf")).argsort(dim=1, stable=True)
    return order.argsort(dim=1) < count[:, None]


def run_passes(
    predict: Callable[[PartialTargets], Float[Tensor, "candidate position vocab"]],
    candidates: PartialTargets,
    *,
    num_passes: int,
    excluded: Sequence[int],
    before_pass: Callable[[], None] | None = None,
) -> Iterator[CandidatePass]:
    """All candidates after each pass, as long as one of them has a word to predict.

    Words are predicted where the candidates know no token; `predict` gives log-probabilities, and
    the search may change this tensor. `excluded` are the tokens that are never written.
    """
    tokens = candidates.known
    position = torch.arange(tokens.shape[1], device=tokens.device)
    may_mask = (position < candidates.length[:, None]) & tokens.eq(PAD)
    num_words = may_mask.sum(1)
    longest = int(num_words.max())
    confidence = torch.zeros(tokens.shape, device=tokens.device)
    for number in range(num_passes):
        if num_masked(longest, number=number, num_passes=num_passes) == 0:
            return
        if before_pass is not None:
            before_pass()
        count = num_masked(num_words, number=number, num_passes=num_passes)
        masked = least_probable(confidence, may_mask, count)
        scores = predict(replace(candidates, known=tokens.masked_fill(masked, PAD)))
        exclude(scores, excluded)
        best = scores.max(dim=-1)
        tokens = torch.where(masked, best.indices, tokens)
        confidence = torch.where(masked, best.values.float(), confidence)
        yield CandidatePass(tokens, masked, confidence)


def read_passes(
    passes: Sequence[CandidatePass], *, row: int, num_words: int
) -> tuple[WrittenPass, ...]:
    """The passes over one candidate in which it had a word to predict.

    A masked word counts as deleted, and as new where it was predicted again.
    """
    read: list[WrittenPass] = []
    before: tuple[int, ...] = ()
    for one in passes:
        masked = tuple(one.masked[row, :num_words].tolist())
        if not any(masked):
            continue
        tokens = tuple(one.tokens[row, :num_words].tolist())
        values = tuple(one.confidence[row, :num_words].tolist())
        read.append(WrittenPass(before, masked[: len(before)], tokens, masked, values))
        before = tokens
    return tuple(read)
