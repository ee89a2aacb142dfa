"""Generation under CTC: the best path (one_pass), or a prefix beam search over sentences.

    decoding: {kind: one_pass}
    decoding: {kind: ctc_beam, size: 5, candidates: 20}

The best path takes the most probable symbol at each position and collapses them: one alignment. A
prefix beam search adds up the alignments of each sentence (decoding/parallel/ctc.py has both).

Graves et al. 2006; Libovický & Helcl 2018. Tested against: the searches of ctc.py, a model that
must spell a word, and: a sentence alone = in any batch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal, Self

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.generator import NO_WATCHER, Generator, Watcher
from headwise.decoding.parallel.ctc import (
    CtcPath,
    Fusion,
    align,
    best_paths,
    prefix_beam_search,
    prune_tokens,
)
from headwise.decoding.parallel.excluded_tokens import excluded_tokens
from headwise.decoding.parallel.protocol import AlignedModel
from headwise.decoding.request_option import RequestOption
from headwise.decoding.results import EMPTY_RESULT, Hypothesis, SearchResult
from headwise.decoding.rules.constraints import SentenceRules
from headwise.decoding.rules.honoured_rules import Rule
from headwise.decoding.rules.length_limit import limit_for
from headwise.text.tokenizer import EOS, PAD

CERTAIN = 20.0
"""Logit of a token that is given."""


class CtcBeamSettings(GenerationSettings):
    """The best sentences by the sum over their alignments."""

    output_forms: ClassVar[tuple[str, ...]] = ("alignment",)
    summary: ClassVar[str] = "The best of several sentences, each the sum of its alignments."
    request_options: ClassVar[Mapping[str, RequestOption]] = {
        "size": RequestOption(5, low=1, high=8)
    }
    kind: Literal["ctc_beam"] = "ctc_beam"
    size: int = Field(default=5, ge=1, le=1024)
    """Prefixes kept at every position."""
    num_best: int = Field(default=1, ge=1, le=1024)
    """Sentences returned, best first; at most `size`."""
    candidates: int = Field(default=10, ge=1, le=1024)
    """Most probable tokens that are considered at every position."""
    token_bonus: float = Field(default=0.0, ge=-10, le=10)
    """Added to the score for every token; above 0 prefers longer sentences."""

    @property
    def num_hypotheses(self) -> int:
        return self.size

    def with_num_results(self, count: int, *, may_widen: bool) -> Self | None:
        if count > self.size and not may_widen:
            return None
        return self.model_copy(update={"num_best": count, "size": max(self.size, count)})


class CtcSearch(Generator):
    honours: ClassVar[frozenset[Rule]] = frozenset({"allow_unknown"})

    def __init__(self, model: AlignedModel) -> None:
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
        if watcher.before_step is not None:
            watcher.before_step()
        filled = [i for i, source in enumerate(sources) if len(source)]
        results = [EMPTY_RESULT] * len(sources)
        if not filled:
            return results
        memory = self.model.read_sources([sources[i] for i in filled])
        scores, count = self.model.predict_upsampled(memory)
        scores[..., list(excluded_tokens(settings)[1:])] = -torch.inf  # all but the blank
        if isinstance(settings, CtcBeamSettings):
            found = self._search(scores, count, settings)
        else:
            best = scores.max(-1)
            paths = best_paths(best.indices, best.values, position_count=count)
            found = [[_as_hypothesis(path, path.log_probability)] for path in paths]
        for i, hypotheses in zip(filled, found, strict=True):
            limit = limit_for(settings.max_length, len(sources[i])) - 1
            results[i] = SearchResult(tuple(_cut(one, limit) for one in hypotheses))
            if watcher.on_result is not None:
                watcher.on_result(i, results[i])
        return results

    def _search(
        self, scores: Tensor, count: Tensor, settings: CtcBeamSettings
    ) -> list[list[Hypothesis]]:
        tables = prune_tokens(scores, position_count=count, count=settings.candidates)
        fusion = Fusion(token_bonus=settings.token_bonus)
        found = []
        for top in tables:
            best = prefix_beam_search(top, size=settings.size, fusion=fusion)[: settings.num_best]
            found.append(
                [
                    _as_hypothesis(align(one.tokens, top), one.log_probability, one.score)
                    for one in best
                ]
            )
        return found

    @torch.no_grad()
    def read(
        self,
        sources: Sequence[Sequence[int]],
        target: Sequence[int],
        *,
        before_step: Callable[[], None] | None = None,
    ) -> Iterator[Float[Tensor, "source vocab"]]:
        """The distributions at the positions that write the target in its best alignment.

        A source whose positions cannot write the target gives each token no probability.
        """
        if before_step is not None:
            before_step()
        memory = self.model.read_sources(sources)
        scores, count = self.model.predict_upsampled(memory)
        rows = [
            _read_target(scores[i, :number], list(target))
            for i, number in enumerate(count.tolist())
        ]
        yield from torch.stack(rows).unbind(1)


def _as_hypothesis(path: CtcPath, total: float, score: float | None = None) -> Hypothesis:
    """A sentence; its score is the mean log-probability of its tokens if no search has given one.

    The end of the sentence is the end of the positions: it is certain.
    """
    values = path.token_log_probabilities
    mean = sum(values) / max(1, len(values))
    return Hypothesis(
        path.tokens, total, mean if score is None else score, (*values, 0.0), finished=True
    )


def _cut(found: Hypothesis, limit: int) -> Hypothesis:
    """The first `limit` tokens."""
    if len(found.tokens) <= limit:
        return found
    return Hypothesis(
        found.tokens[:limit],
        found.log_probability,
        found.score,
        found.token_log_probabilities[:limit],
        finished=False,
    )


def _read_target(scores: Float[Tensor, "position vocab"], target: list[int]) -> Tensor:
    """For each token of the target the distribution where its best alignment writes it, the blank
    left out, and a certain end."""
    places = _viterbi_places(scores, target)
    without_blank = scores.clone()
    without_blank[:, PAD] = -torch.inf
    rows = [
        torch.full_like(scores[0], -CERTAIN) if place is None else without_blank[place]
        for place in places
    ]
    end = torch.zeros_like(scores[0])
    end[EOS] = CERTAIN
    return torch.stack([*rows, end]).log_softmax(-1)


def _viterbi_places(scores: Tensor, target: list[int]) -> list[int | None]:
    """At which position the best alignment writes each token first; None if there is none."""
    states = [PAD]
    for token in target:
        states += [token, PAD]
    emitted = scores[:, states].tolist()
    way: list[tuple[float, tuple[int, ...]]] = [(-float("inf"), ())] * len(states)
    way[0] = (0.0, ())
    best = way
    for place, row in enumerate(emitted):
        now = []
        for state, value in enumerate(row):
            choices = [best[state]]
            if state > 0 and (place > 0 or state == 1):
                entered = best[state - 1]
                choices.append((entered[0], (*entered[1], place) if state % 2 else entered[1]))
            if state > 2 and state % 2 and states[state] != states[state - 2]:
                skipped = best[state - 2]
                choices.append((skipped[0], (*skipped[1], place)))
            total, places = max(choices, key=lambda one: one[0])
            now.append((total + value, places))
        best = now
    _, found = max(best[-2:], key=lambda one: one[0]) if target else (0.0, ())
    return list(found) if len(found) == len(target) else [None] * len(target)
