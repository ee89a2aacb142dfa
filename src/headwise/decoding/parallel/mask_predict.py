"""Mask-Predict: predict all words at once, then mask the least probable ones and predict them anew.

With N words and T passes, pass 0 predicts all N words. Pass t = 1 … T-1 masks the

    n_t = floor(N · (T - t) / T)

words of lowest probability and predicts them again, given the others. A word that stays keeps the
probability with which it was predicted; it is not judged again. A pass with n_t = 0 would change
nothing and is left out (short sentences).

The number of words must be known before. Several lengths are tried as candidates, side by side, and
the one with the highest mean log-probability of its words wins. With T = 1 this is the plain
decoder without steps: argmax at each position.

Paper: Ghazvininejad et al. 2019, "Mask-Predict" (arXiv 1904.09324); the original masks at least one
word in each pass. Tested against: T = 1 is argmax, the numbers of masked words are those of the
formula, a Python program for one sentence, and: a sentence alone = in any batch.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from headwise.data.token_edits import PLACEHOLDER
from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.parallel.excluded_tokens import exclude, excluded_tokens
from headwise.decoding.request_option import RequestOption
from headwise.decoding.results import Hypothesis
from headwise.errors import SettingsError
from headwise.text.tokenizer import EOS, PAD

MAX_PASSES = 1024
MAX_LENGTHS = 1024


class MaskPredictSettings(GenerationSettings):
    summary: ClassVar[str] = "All words at once; the least probable ones are predicted again."
    request_options: ClassVar[Mapping[str, RequestOption]] = {
        "passes": RequestOption(10, low=1, high=50),
        "lengths": RequestOption(5, low=1, high=8),
    }
    kind: Literal["mask_predict"] = "mask_predict"
    passes: int = Field(default=10, ge=1, le=MAX_PASSES)
    """How often the decoder runs; 1 predicts all words independently of each other."""
    lengths: int = Field(default=5, ge=1, le=MAX_LENGTHS)
    """Lengths tried for each sentence, the most probable ones."""
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


class MaskedPredictor(Protocol):
    """A decoder without a causal mask that has read the sources of the candidates."""

    def predict(
        self, tokens: Int[Tensor, "candidate position"], known: Bool[Tensor, "candidate position"]
    ) -> Float[Tensor, "candidate position vocab"]:
        """Log-probabilities of the words at each position; the search may change this tensor.

        Where `known` is false, a learned vector is read, not the token. Padding is what has the
        token PAD.
        """
        ...


@dataclass(frozen=True)
class PredictionPass:
    """One pass over one candidate, after it was computed; </s> is left out."""

    tokens: tuple[int, ...]
    masked: tuple[bool, ...]
    """The words that this pass predicted."""
    log_probabilities: tuple[float, ...]
    """Of each word, when it was predicted."""


@dataclass(frozen=True)
class MaskPredictResult:
    """The candidates of one sentence, and the passes of the best one if they were asked for."""

    hypotheses: tuple[Hypothesis, ...]
    """Best first. The score is the mean log-probability of the words; </s> is free of cost."""
    passes: tuple[PredictionPass, ...] = ()


@dataclass(frozen=True)
class _Pass:
    """One pass over all candidates, still on the device."""

    tokens: Int[Tensor, "candidate position"]
    masked: Bool[Tensor, "candidate position"]
    confidence: Float[Tensor, "candidate position"]


def mask_predict(
    model: MaskedPredictor,
    num_words: Int[Tensor, "sentence length"],
    settings: MaskPredictSettings,
    *,
    traced: bool = False,
    before_pass: Callable[[], None] | None = None,
) -> list[MaskPredictResult]:
    """Search for all sentences of a batch.

    `num_words` are the lengths to try for each sentence, at least 1, without </s>. The model gets
    the candidates sentence by sentence: row i · lengths + k is length k of sentence i. Its batch
    has always this size.
    """
    counts = num_words.flatten().tolist()
    assert min(counts) >= 1, "an empty candidate has no mean log-probability"
    passes = deque(
        run_passes(model, num_words.flatten(), settings, before_pass=before_pass),
        maxlen=None if traced else 1,
    )
    last = passes[-1]
    tokens, values = last.tokens.tolist(), last.confidence.tolist()
    candidates = [
        make_hypothesis(words[:count], row[:count])
        for words, row, count in zip(tokens, values, counts, strict=True)
    ]
    width, results = num_words.shape[1], []
    for first in range(0, len(candidates), width):
        order = sorted(range(first, first + width), key=lambda row: -candidates[row].score)
        best = tuple(candidates[row] for row in order[: settings.num_best])
        trace = _read_passes(passes, order[0], counts[order[0]]) if traced else ()
        results.append(MaskPredictResult(best, trace))
    return results


def make_hypothesis(words: list[int], log_probabilities: list[float]) -> Hypothesis:
    """Words and their log-probabilities; the end of the sentence was given and is certain."""
    total = sum(log_probabilities)
    score = total / max(len(words), 1)
    return Hypothesis(tuple(words), total, score, (*log_probabilities, 0.0), finished=True)


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
    model: MaskedPredictor,
    num_words: Int[Tensor, " candidate"],
    settings: MaskPredictSettings,
    *,
    before_pass: Callable[[], None] | None,
) -> Iterator[_Pass]:
    """All candidates after each pass, as long as one of them has a word to predict."""
    longest, excluded = int(num_words.max()), excluded_tokens(settings)
    position = torch.arange(longest + 1, device=num_words.device)
    may_mask = position < num_words[:, None]
    tokens = torch.where(position == num_words[:, None], EOS, PAD)
    confidence = torch.zeros(tokens.shape, device=tokens.device)
    for number in range(settings.passes):
        if num_masked(longest, number=number, num_passes=settings.passes) == 0:
            return
        if before_pass is not None:
            before_pass()
        count = num_masked(num_words, number=number, num_passes=settings.passes)
        masked = least_probable(confidence, may_mask, count)
        scores = model.predict(tokens.masked_fill(masked, PLACEHOLDER), ~masked)
        exclude(scores, excluded)
        best = scores.max(dim=-1)
        tokens = torch.where(masked, best.indices, tokens)
        confidence = torch.where(masked, best.values.float(), confidence)
        yield _Pass(tokens, masked, confidence)


def _read_passes(passes: Iterable[_Pass], row: int, count: int) -> tuple[PredictionPass, ...]:
    """The passes over one candidate in which it had a word to predict."""
    read = (
        PredictionPass(
            tuple(one.tokens[row, :count].tolist()),
            tuple(one.masked[row, :count].tolist()),
            tuple(one.confidence[row, :count].tolist()),
        )
        for one in passes
    )
    return tuple(one for one in read if any(one.masked))
