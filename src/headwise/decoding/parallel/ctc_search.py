"""Generation under CTC: the best path (one_pass), or a prefix beam search over sentences.

    decoding: {kind: one_pass}
    decoding: {kind: ctc_beam, size: 5, candidates: 20}
    decoding: {kind: ctc_beam, language_model: runs/pieces, language_weight: 0.3, token_bonus: 1}

The best path takes the most probable symbol at each position and collapses them: one alignment. A
prefix beam search adds up the alignments of each sentence (decoding/parallel/ctc.py has both). A
language model can take part in it (language_fusion.py).

Graves et al. 2006; Libovický & Helcl 2018. Tested against: the searches of ctc.py, a model that
must spell a word, and: a sentence alone = in any batch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal, Self

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.generator import Watcher
from headwise.decoding.parallel.ctc import (
    CtcPath,
    Fusion,
    align,
    best_paths,
    prefix_beam_search,
    prune_tokens,
)
from headwise.decoding.parallel.excluded_tokens import excluded_tokens
from headwise.decoding.parallel.language_fusion import FusedSettings, PrefixModel
from headwise.decoding.parallel.parallel_generator import ParallelGenerator
from headwise.decoding.parallel.protocol import AlignedModel
from headwise.decoding.records import MOST_PLACES, AlignmentRecord, best_choices
from headwise.decoding.request_option import RequestOption
from headwise.decoding.results import Hypothesis, SearchResult, written_at_once
from headwise.decoding.rules.honoured_rules import Rule
from headwise.decoding.rules.length_limit import limit_for
from headwise.text.tokenizer import EOS, PAD


class CtcBeamSettings(FusedSettings):
    """The best sentences by the sum over their alignments."""

    output_forms: ClassVar[tuple[str, ...]] = ("alignment",)
    records_passes: ClassVar[bool] = True
    keeps_record: ClassVar[bool] = True
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

    @property
    def num_hypotheses(self) -> int:
        return self.size

    def with_num_results(self, count: int, *, may_widen: bool) -> Self | None:
        if count > self.size and not may_widen:
            return None
        return self.model_copy(update={"num_best": count, "size": max(self.size, count)})


class CtcSearch(ParallelGenerator):
    honours: ClassVar[frozenset[Rule]] = frozenset({"allow_unknown"})

    def __init__(self, model: AlignedModel, language: PrefixModel | None = None) -> None:
        self.model, self.language = model, language

    def write_batch(
        self,
        sources: Sequence[Sequence[int]],
        settings: GenerationSettings,
        *,
        numbers: Sequence[int],
        traced: bool,
        watcher: Watcher,
    ) -> list[SearchResult]:
        if watcher.before_step is not None:
            watcher.before_step()
        memory = self.model.read_sources(sources)
        scores, count = self.model.predict_upsampled(memory)
        scores[..., list(excluded_tokens(settings)[1:])] = -torch.inf  # all but the blank
        if isinstance(settings, CtcBeamSettings):
            found = self._search(scores, count, settings)
        else:
            best = scores.max(-1)
            paths = best_paths(best.indices, best.values, position_count=count)
            found = [[(_as_hypothesis(path, path.log_probability), path)] for path in paths]
        results = []
        for row, (source, hypotheses) in enumerate(zip(sources, found, strict=True)):
            limit = limit_for(settings.max_length, len(source)) - 1
            kept = tuple(_cut(one, limit) for one, _ in hypotheses)
            result = SearchResult(kept)
            if traced:
                record = _record(scores[row, : int(count[row])], hypotheses[0][1])
                result = SearchResult(kept, passes=written_at_once(kept[0]), record=record)
            results.append(result)
        return results

    def _search(
        self, scores: Tensor, count: Tensor, settings: CtcBeamSettings
    ) -> list[list[tuple[Hypothesis, CtcPath]]]:
        """The best sentences of each source, with their most probable alignments."""
        tables = prune_tokens(scores, position_count=count, count=settings.candidates)
        fusion = Fusion(
            self.language,
            settings.language_weight,
            settings.token_bonus,
            None if self.language is None else EOS,
        )
        found = []
        for top in tables:
            best = prefix_beam_search(top, size=settings.size, fusion=fusion)[: settings.num_best]
            paths = [align(one.tokens, top) for one in best]
            found.append(
                [
                    (_as_hypothesis(path, one.log_probability, one.score), path)
                    for one, path in zip(best, paths, strict=True)
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
        """p(w | the target so far): the sum over the alignments that have written it.

        The end of the sentence has the probability that no other token follows.
        """
        memory = self.model.read_sources(sources)
        scores, count = self.model.predict_upsampled(memory)
        prefix = PrefixSums(scores.double().exp(), count)
        for token in (*target, EOS):
            if before_step is not None:
                before_step()
            yield prefix.following().log().float()
            if token != EOS:
                prefix.append(token)


class PrefixSums:
    """The alignments that have written a prefix, by the position they have reached.

    blank[t], label[t]    the probability that the first t positions write the prefix and end with a
                          blank, or with its last token

    A next token w begins at position t with probability (blank[t] + label[t]) p_t(w), from blank[t]
    alone if w is the last token of the prefix. The sum over t is the probability that w follows.
    """

    def __init__(
        self,
        probabilities: Float[Tensor, "sentence position vocab"],
        count: Int[Tensor, " sentence"],
    ) -> None:
        # Positions after the last one write blanks.
        index = torch.arange(probabilities.shape[1], device=count.device)
        padding = (index >= count[:, None])[..., None]
        blank = torch.zeros_like(probabilities[0, 0])
        blank[PAD] = 1
        self.probabilities = torch.where(padding, blank, probabilities)
        reached = self.probabilities[..., PAD].cumprod(1)
        self.blank = torch.cat([torch.ones_like(reached[:, :1]), reached], dim=1)
        self.label = torch.zeros_like(self.blank)
        self.last = PAD

    def following(self) -> Float[Tensor, "sentence vocab"]:
        """The probability of each next token; EOS stands for none."""
        begun = self.blank[:, :-1] + self.label[:, :-1]
        found = torch.einsum("st,stv->sv", begun, self.probabilities)
        if self.last != PAD:
            merged = (self.label[:, :-1] * self.probabilities[..., self.last]).sum(1)
            found[:, self.last] -= merged
        found[:, PAD] = 0
        found[:, EOS] += self.blank[:, -1] + self.label[:, -1]
        floor = torch.finfo(torch.float32).tiny
        return (found / found.sum(1, keepdim=True).clamp(min=floor)).clamp(min=floor)

    def append(self, token: int) -> None:
        """Continue with the alignments that write this token next."""
        entering = self.blank + (0 if token == self.last else self.label)
        blank, label = torch.zeros_like(self.blank), torch.zeros_like(self.label)
        for place in range(self.probabilities.shape[1]):
            here = self.probabilities[:, place]
            label[:, place + 1] = (label[:, place] + entering[:, place]) * here[:, token]
            blank[:, place + 1] = (blank[:, place] + label[:, place]) * here[:, PAD]
        # Only ratios matter from here on: rescale, so that long prefixes do not underflow.
        total = (blank + label).amax(1, keepdim=True).clamp(min=1e-300)
        self.blank, self.label, self.last = blank / total, label / total, token


def _as_hypothesis(path: CtcPath, total: float, score: float | None = None) -> Hypothesis:
    """A sentence; its score is the mean log-probability of its tokens if no search has given one.

    The end of the sentence is the end of the positions: it is certain.
    """
    values = path.token_log_probabilities
    mean = sum(values) / max(1, len(values))
    return Hypothesis(
        path.tokens, total, mean if score is None else score, (*values, 0.0), finished=True
    )


def _record(scores: Float[Tensor, "position vocab"], path: CtcPath) -> AlignmentRecord:
    """The grid of one sentence, and its alignment."""
    tokens, values = best_choices(scores)
    return AlignmentRecord(
        tokens,
        values,
        chosen=path.alignment[:MOST_PLACES],
        chosen_log_probabilities=path.alignment_log_probabilities[:MOST_PLACES],
        num_positions=len(scores),
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
