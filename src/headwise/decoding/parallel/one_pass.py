"""One pass: the most probable token of every position, all at once.

    T*   the `lengths` most probable lengths of the target
    y_t  = argmax_w p(w | x, T)              for every position t, without looking at the others
    y    = the candidate with the largest mean log-probability per token

A model that predicts the length gives several candidates for one sentence, which are computed side
by side (Ghazvininejad et al. 2019 call it length beam). A model with a fixed number of positions
gives one, cut at the first end of sentence. The log-probability of the end of a sentence is that of
the length. Mask-Predict (mask_predict.py) has more passes over the same candidates.

Gu et al. 2018. Tested against: a fake model that spells a word, argmax by hand, and: a sentence
alone = in any batch.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.generator import Watcher
from headwise.decoding.parallel.excluded_tokens import excluded_tokens
from headwise.decoding.parallel.mask_predict import (
    CandidatePass,
    MaskPredictSettings,
    read_passes,
    run_passes,
)
from headwise.decoding.parallel.parallel_generator import ParallelGenerator
from headwise.decoding.parallel.protocol import ParallelModel, PartialTargets
from headwise.decoding.records import LengthRecord
from headwise.decoding.request_option import RequestOption
from headwise.decoding.results import Hypothesis, SearchResult
from headwise.decoding.rules.honoured_rules import Rule
from headwise.decoding.rules.length_limit import limit_for
from headwise.text.tokenizer import EOS, PAD

CERTAIN_END = 20.0
"""Logit of the end of a sentence at a position where the length says that it ends."""


class OnePassSettings(GenerationSettings):
    """All positions at once, by a model that does not write from left to right."""

    output_forms: ClassVar[tuple[str, ...]] = (
        "positions",
        "cut_positions",
        "chain",
        "copies",
        "alignment",
        "graph",
    )
    records_passes: ClassVar[bool] = True
    keeps_record: ClassVar[bool] = True
    summary: ClassVar[str] = "All tokens at once, by a parallel model."
    request_options: ClassVar[Mapping[str, RequestOption]] = {
        "lengths": RequestOption(
            5,
            low=1,
            high=16,
            description="lengths that are tried",
            output_forms=("positions", "chain"),
        )
    }
    kind: Literal["one_pass"] = "one_pass"
    lengths: int = Field(default=5, ge=1, le=64)
    """Lengths that are tried for each sentence; the candidate with the largest mean log-probability
    is taken."""


class OnePass(ParallelGenerator):
    """One pass or several over the candidates of each sentence."""

    honours: ClassVar[frozenset[Rule]] = frozenset({"min_length", "allow_unknown"})

    def __init__(self, model: ParallelModel) -> None:
        self.model = model

    def write_batch(
        self,
        sources: Sequence[Sequence[int]],
        settings: GenerationSettings,
        *,
        numbers: Sequence[int],
        traced: bool,
        watcher: Watcher,
    ) -> list[SearchResult]:
        assert isinstance(settings, OnePassSettings | MaskPredictSettings)
        memory = self.model.read_sources(sources)
        limits = [limit_for(settings.max_length, len(source)) for source in sources]
        candidates, ends = propose_lengths(
            self.model, memory, limits, count=settings.lengths, shortest=settings.min_length + 1
        )
        passes = self.complete(memory, candidates, settings, watcher=watcher, traced=traced)
        written = hypotheses_of(self.model, candidates, ends, passes, limits=limits)
        rows = rows_by_score(candidates, [one.score for one in written])
        num_best = settings.num_best if isinstance(settings, MaskPredictSettings) else 1
        results = []
        for own in rows:
            hypotheses = tuple(written[row] for row in own[:num_best])
            result = SearchResult(hypotheses)
            if traced:
                num_words = len(hypotheses[0].tokens)
                result = SearchResult(
                    hypotheses,
                    passes=read_passes(passes, row=own[0], num_words=num_words),
                    record=self._tried_lengths(candidates, ends, own, written),
                )
            results.append(result)
        return results

    def _tried_lengths(
        self,
        candidates: PartialTargets,
        ends: Float[Tensor, " candidate"],
        rows: Sequence[int],
        written: Sequence[Hypothesis],
    ) -> LengthRecord | None:
        """The candidates of one sentence, given best first; none are tried of a fixed length."""
        if self.model.num_begins is not None:
            return None
        by_probability = sorted(rows, key=lambda row: -float(ends[row]))
        return LengthRecord(
            lengths=tuple(int(candidates.length[row]) for row in by_probability),
            log_probabilities=tuple(float(ends[row]) for row in by_probability),
            scores=tuple(written[row].score for row in by_probability),
            chosen=by_probability.index(rows[0]),
        )

    def complete(
        self,
        memory: Any,
        candidates: PartialTargets,
        settings: GenerationSettings,
        *,
        watcher: Watcher,
        traced: bool,
    ) -> Sequence[CandidatePass]:
        """The candidates after each pass, or after the last one if nobody wants to see the others.

        Candidates without any word to predict have no pass.
        """
        excluded = excluded_tokens(settings)
        ends_known = self.model.num_begins is None

        def predict(targets: PartialTargets) -> Tensor:
            scores = self.model.predict(memory, targets)
            if not ends_known:
                scores[:, : settings.min_length, EOS] = float("-inf")
            return scores

        passes = run_passes(
            predict,
            candidates,
            num_passes=settings.passes if isinstance(settings, MaskPredictSettings) else 1,
            excluded=[token for token in excluded if ends_known or token != EOS],
            before_pass=watcher.before_step,
        )
        return deque(passes, maxlen=None if traced else 1)

    @torch.no_grad()
    def read(
        self,
        sources: Sequence[Sequence[int]],
        target: Sequence[int],
        *,
        before_step: Callable[[], None] | None = None,
    ) -> Iterator[Float[Tensor, "source vocab"]]:
        """The distributions of one pass that knows the length of the target."""
        if before_step is not None:
            before_step()
        memory = self.model.read_sources(sources)
        length = len(target) + 1
        device = self.model.device
        positions = length if self.model.num_begins is None else self.model.num_begins
        candidates = of_lengths(
            torch.arange(len(sources), device=device),
            torch.full((len(sources),), positions, device=device),
            ends_known=self.model.num_begins is None,
        )
        scores = self.model.predict(memory, candidates)
        yield from scores[:, : len(target)].unbind(1)
        if self.model.num_begins is None:
            yield certain_end(scores[:, 0])
        elif len(target) < positions:
            yield scores[:, len(target)]


def certain_end(scores: Float[Tensor, "source vocab"]) -> Float[Tensor, "source vocab"]:
    """The distribution where the length says that the sentence ends; `scores` give its shape."""
    end = torch.zeros_like(scores)
    end[:, EOS] = CERTAIN_END
    return end.log_softmax(-1)


def of_lengths(sentence: Tensor, length: Tensor, *, ends_known: bool) -> PartialTargets:
    """PartialTargets of which nothing but the length is known."""
    known = torch.full(
        (len(length), int(length.max())), PAD, dtype=torch.int64, device=length.device
    )
    if ends_known:
        known.scatter_(1, length[:, None] - 1, EOS)
    return PartialTargets(sentence, length, known)


def propose_lengths(
    model: ParallelModel,
    memory: Any,
    limits: Sequence[int],
    *,
    count: int,
    shortest: int,
) -> tuple[PartialTargets, Float[Tensor, " candidate"]]:
    """The most probable lengths of each sentence as candidates, and their log-probabilities.

    A model with a fixed number of positions gives one candidate, whose end is not known yet. An
    empty candidate is none: without words it has no mean log-probability to compare.
    """
    device = model.device
    sentence = torch.arange(len(limits), device=device)
    if model.num_begins is not None:
        length = torch.full((len(limits),), model.num_begins, device=device)
        return of_lengths(sentence, length, ends_known=False), torch.zeros(len(limits))
    longest = max(limits)
    scores = model.length_scores(memory, longest=longest)
    lengths = torch.arange(1, longest + 1, device=device)
    # A candidate without words would have the best mean log-probability of all: none.
    shortest = max(2, shortest)
    allowed = (lengths <= torch.tensor(limits, device=device)[:, None]) & (lengths >= shortest)
    # A limit below the shortest length leaves nothing: then the limit holds.
    allowed[:, 0] |= ~allowed.any(1)
    scores = scores.masked_fill(~allowed, float("-inf"))
    # Lengths without a class are the last resort, shortest first.
    scores = torch.where(allowed & scores.isneginf(), -1e4 - lengths.float(), scores)
    values, chosen = scores.topk(min(count, longest), dim=1)
    usable = values.isfinite()
    candidates = of_lengths(
        sentence[:, None].expand_as(chosen)[usable], chosen[usable] + 1, ends_known=True
    )
    return candidates, values[usable]


def hypotheses_of(
    model: ParallelModel,
    candidates: PartialTargets,
    ends: Float[Tensor, " candidate"],
    passes: Sequence[CandidatePass],
    *,
    limits: Sequence[int],
) -> list[Hypothesis]:
    """The candidates after the last pass, as hypotheses."""
    tokens, values = candidates.known, torch.zeros(candidates.known.shape)
    if passes:
        tokens, values = passes[-1].tokens, passes[-1].confidence
    columns = (candidates.sentence, candidates.length, ends, tokens, values)
    found: list[Hypothesis] = []
    for sentence, length, end, row, scores in zip(*(x.tolist() for x in columns), strict=True):
        here, scored = row[:length], scores[:length]
        if model.num_begins is None:
            here, scored, finished = here[:-1], [*scored[:-1], end], True
        else:
            limit = min(length, limits[sentence])
            place = here.index(EOS) if EOS in here[:limit] else limit
            finished = place < limit
            here, scored = here[:place], scored[: place + finished]
        mean = sum(scored[: len(here)]) / max(1, len(here))
        found.append(Hypothesis(tuple(here), sum(scored), mean, tuple(scored), finished))
    return found


def rows_by_score(candidates: PartialTargets, scores: Sequence[float]) -> list[list[int]]:
    """The rows of each sentence, best first; of equal ones the more probable length first."""
    rows: dict[int, list[int]] = {}
    for row, sentence in enumerate(candidates.sentence.tolist()):
        rows.setdefault(sentence, []).append(row)
    return [sorted(rows[sentence], key=lambda row: -scores[row]) for sentence in sorted(rows)]
