"""One pass: the most probable token of every position, all at once.

    T*   the `lengths` most probable lengths of the target
    y_t  = argmax_w p(w | x, T)              for every position t, without looking at the others
    y    = the candidate with the largest mean log-probability per token

A model that predicts the length gives several candidates for one sentence, which are computed side
by side (Ghazvininejad et al. 2019 call it length beam). A model with a fixed number of positions
gives one, cut at the first end of sentence. The log-probability of the end of a sentence is that of
the length.

Gu et al. 2018. Tested against: a fake model that spells a word, argmax by hand, and: a sentence
alone = in any batch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.generator import NO_WATCHER, Generator, Watcher
from headwise.decoding.parallel.protocol import ParallelModel, PartialTargets
from headwise.decoding.request_option import RequestOption
from headwise.decoding.results import EMPTY_RESULT, Hypothesis, SearchResult
from headwise.decoding.rules.constraints import SentenceRules
from headwise.decoding.rules.honoured_rules import Rule
from headwise.decoding.rules.length_limit import limit_for
from headwise.decoding.rules.next_token import MINUS_INFINITY, forbid_special
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
    summary: ClassVar[str] = "All tokens at once, by a parallel model."
    request_options: ClassVar[Mapping[str, RequestOption]] = {
        "lengths": RequestOption(5, low=1, high=16, description="lengths that are tried")
    }
    kind: Literal["one_pass"] = "one_pass"
    lengths: int = Field(default=5, ge=1, le=64)
    """Lengths that are tried for each sentence; the candidate with the largest mean log-probability
    is taken."""


class OnePass(Generator):
    honours: ClassVar[frozenset[Rule]] = frozenset({"min_length", "allow_unknown"})

    def __init__(self, model: ParallelModel) -> None:
        self.model = model

    @torch.no_grad()
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
        assert isinstance(settings, OnePassSettings)
        if watcher.before_step is not None:
            watcher.before_step()
        filled = [i for i, source in enumerate(sources) if len(source)]
        results = [EMPTY_RESULT] * len(sources)
        if not filled:
            return results
        memory = self.model.read_sources([sources[i] for i in filled])
        limits = [limit_for(settings.max_length, len(sources[i])) for i in filled]
        candidates, ends = propose_lengths(
            self.model, memory, limits, count=settings.lengths, shortest=settings.min_length + 1
        )
        scores = self.model.predict(memory, candidates)
        forbid_special(scores, settings)
        if self.model.num_begins is None:
            scores[..., EOS] = MINUS_INFINITY  # the length says where the sentence ends
        found = read_hypotheses(self.model, candidates, ends, scores, limits=limits)
        for i, hypotheses in zip(filled, found, strict=True):
            results[i] = SearchResult((max(hypotheses, key=lambda one: one.score),))
            if watcher.on_result is not None:
                watcher.on_result(i, results[i])
        return results

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
            end = torch.zeros_like(scores[:, 0])
            end[:, EOS] = CERTAIN_END
            yield end.log_softmax(-1)
        elif len(target) < positions:
            yield scores[:, len(target)]


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

    A model with a fixed number of positions gives one candidate, whose end is not known yet.
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


def read_hypotheses(
    model: ParallelModel,
    candidates: PartialTargets,
    ends: Float[Tensor, " candidate"],
    scores: Float[Tensor, "candidate position vocab"],
    *,
    limits: Sequence[int],
) -> list[list[Hypothesis]]:
    """The most probable tokens of each candidate, by sentence."""
    values, tokens = scores.max(-1)
    return hypotheses_of(model, candidates, ends, tokens.tolist(), values.tolist(), limits=limits)


def hypotheses_of(
    model: ParallelModel,
    candidates: PartialTargets,
    ends: Float[Tensor, " candidate"],
    tokens: Sequence[Sequence[int]],
    values: Sequence[Sequence[float]],
    *,
    limits: Sequence[int],
) -> list[list[Hypothesis]]:
    """PartialTargets whose tokens are chosen, as hypotheses, by sentence."""
    found: list[list[Hypothesis]] = [[] for _ in limits]
    columns = (candidates.sentence.tolist(), candidates.length.tolist(), ends.tolist())
    for row, (sentence, length, end) in enumerate(zip(*columns, strict=True)):
        here, scored = list(tokens[row][:length]), list(values[row][:length])
        if model.num_begins is None:
            here, scored, finished = here[:-1], [*scored[:-1], end], True
        else:
            limit = min(length, limits[sentence])
            place = here.index(EOS) if EOS in here[:limit] else limit
            finished = place < limit
            here, scored = here[:place], scored[: place + finished]
        total = sum(scored)
        mean = sum(scored[: len(here)]) / max(1, len(here))
        found[sentence].append(Hypothesis(tuple(here), total, mean, tuple(scored), finished))
    return found
