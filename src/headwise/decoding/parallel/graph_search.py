"""Generation from a graph of vertices: greedy (one_pass), lookahead, Viterbi, or beam search.

    one_pass         always the most probable link
    lookahead        the best link together with the token it leads to
    joint_viterbi    the best path of all lengths
    graph_beam       adds up the paths that write the same text

The first three find one path; the beam compares texts, and a language model can take part in it
(language_fusion.py). decoding/parallel/graph.py and graph_beam.py
have the searches. Vertex 0 writes `<s>` and the last vertex `</s>`; no vertex between them does.

Huang et al. 2022; Shao et al. 2022. Tested against: the searches themselves, a model that must
spell a word, and: a sentence alone = in any batch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.generator import Watcher
from headwise.decoding.parallel.excluded_tokens import excluded_tokens
from headwise.decoding.parallel.graph import (
    Graph,
    GraphPath,
    greedy_paths,
    lookahead_paths,
    rank_vertices,
    viterbi_paths,
)
from headwise.decoding.parallel.graph_beam import GraphBeam, beam_texts
from headwise.decoding.parallel.language_fusion import FusedSettings, Prefix, PrefixModel
from headwise.decoding.parallel.parallel_generator import ParallelGenerator
from headwise.decoding.parallel.protocol import GraphModel
from headwise.decoding.records import (
    MOST_PLACES,
    NUM_SHOWN,
    GraphRecord,
    best_choices,
    possible_choices,
)
from headwise.decoding.request_option import RequestOption
from headwise.decoding.results import Hypothesis, SearchResult, written_at_once
from headwise.decoding.rules.honoured_rules import Rule
from headwise.decoding.rules.length_limit import limit_for
from headwise.text.tokenizer import BOS, EOS

NUM_RANKED = 5
"""Tokens of each vertex that a beam search considers."""


class _GraphSettings(GenerationSettings):
    output_forms: ClassVar[tuple[str, ...]] = ("graph",)
    records_passes: ClassVar[bool] = True
    keeps_record: ClassVar[bool] = True


class LookaheadSettings(_GraphSettings):
    """At each vertex the link that is best together with the token it leads to."""

    summary: ClassVar[str] = "The best link together with the best token it leads to."
    kind: Literal["lookahead"] = "lookahead"
    token_weight: float = Field(default=1.0, ge=0, le=10)
    """Weight of the token's log-probability beside the link's."""


class JointViterbiSettings(_GraphSettings):
    """The best path with its tokens, by its log-probability divided by length^length_exponent."""

    summary: ClassVar[str] = "The best path of all, with a penalty on short ones."
    kind: Literal["joint_viterbi"] = "joint_viterbi"
    length_exponent: float = Field(default=1.0, ge=0, le=10)
    """0 compares probabilities, which prefers short outputs; 1 compares means."""


class GraphBeamSettings(FusedSettings, _GraphSettings):
    """The best texts; the paths that write the same text are added up."""

    summary: ClassVar[str] = "The best texts, each the sum of its paths."
    request_options: ClassVar[Mapping[str, RequestOption]] = {
        "size": RequestOption(5, low=1, high=8)
    }
    kind: Literal["graph_beam"] = "graph_beam"
    size: int = Field(default=5, ge=1, le=1024)
    """Texts kept at every length."""
    num_best: int = Field(default=1, ge=1, le=1024)
    """Texts returned, best first."""
    length_exponent: float = Field(default=1.0, ge=0, le=10)
    """0 compares probabilities, which prefers short outputs; 1 compares means."""

    @property
    def num_hypotheses(self) -> int:
        return self.size

    def with_num_results(self, count: int, *, may_widen: bool) -> Self | None:
        if count > self.size and not may_widen:
            return None
        return self.model_copy(update={"num_best": count, "size": max(self.size, count)})


class GraphSearch(ParallelGenerator):
    honours: ClassVar[frozenset[Rule]] = frozenset({"allow_unknown"})

    def __init__(self, model: GraphModel, language: PrefixModel | None = None) -> None:
        self.model = model
        self.language = None if language is None else AfterBegin(language)

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
        # A path has two tokens more than the text, <s> and </s>, of which a limit counts the last.
        limits = [limit_for(settings.max_length, len(source)) + 1 for source in sources]
        is_beam = isinstance(settings, GraphBeamSettings)
        graph = self.graph(memory, settings, count=NUM_RANKED if is_beam or traced else 1)
        found = search_graph(graph, settings, longest=max(limits), language=self.language)
        results = []
        for row, (limit, texts) in enumerate(zip(limits, found, strict=True)):
            kept = tuple(_cut(one, limit - 2) for one, _ in texts)
            result = SearchResult(kept)
            if traced:
                record = _record(graph, row, texts[0][1])
                result = SearchResult(kept, passes=written_at_once(kept[0]), record=record)
            results.append(result)
        return results

    def graph(self, memory: Any, settings: GenerationSettings, *, count: int) -> Graph:
        """The graph of each sentence, with the best tokens of each vertex."""
        scores, links, vertices = self.model.predict_graph(memory)
        scores[..., list(excluded_tokens(settings))] = -torch.inf
        row = torch.arange(len(scores), device=scores.device)
        for place, token in ((torch.zeros_like(vertices), BOS), (vertices - 1, EOS)):
            scores[row, place] = -torch.inf
            scores[row, place, token] = 0.0
        return rank_vertices(scores, links, vertices, count=count)

    @torch.no_grad()
    def read(
        self,
        sources: Sequence[Sequence[int]],
        target: Sequence[int],
        *,
        before_step: Callable[[], None] | None = None,
    ) -> Iterator[Float[Tensor, "source vocab"]]:
        """p(w | the target so far): the sum over the paths that have written it, one more vertex.

        The end of the sentence has the probability of the links to the last vertex.
        """
        memory = self.model.read_sources(sources)
        scores, links, vertices = self.model.predict_graph(memory)
        row = torch.arange(len(scores), device=scores.device)
        tokens = scores.double().exp()
        tokens[..., [BOS, EOS]] = 0
        tokens[row, vertices - 1] = 0
        tokens[row, vertices - 1, EOS] = 1
        passed = links.double().exp()
        walks = torch.zeros_like(passed[:, 0])
        walks[:, 0] = 1
        for token in (*target, EOS):
            if before_step is not None:
                before_step()
            arrived = (walks[:, None] @ passed)[:, 0]
            following = (arrived[:, None] @ tokens)[:, 0]
            total = following.sum(-1, keepdim=True)
            floor = torch.finfo(torch.float32).tiny
            yield (following / total.clamp(min=floor)).clamp(min=floor).log().float()
            walks = arrived * tokens[..., token]
            walks = walks / walks.sum(-1, keepdim=True).clamp(min=1e-300)


class AfterBegin:
    """A language model for the texts of a graph, which begin with `<s>`."""

    def __init__(self, model: PrefixModel) -> None:
        self.model = model

    def score_next(
        self, prefixes: Sequence[Prefix], tokens: Sequence[int]
    ) -> Sequence[Sequence[float]]:
        rows = iter(self.model.score_next([one[1:] for one in prefixes if one], tokens))
        return [next(rows) if one else [0.0] * len(tokens) for one in prefixes]


def search_graph(
    graph: Graph,
    settings: GenerationSettings,
    *,
    longest: int,
    language: PrefixModel | None = None,
) -> list[list[tuple[Hypothesis, GraphPath]]]:
    """The hypotheses of each sentence with their paths, best first."""
    match settings:
        case LookaheadSettings(token_weight=weight):
            paths = lookahead_paths(graph, token_weight=weight)
        case JointViterbiSettings(length_exponent=exponent):
            paths = viterbi_paths(graph, length_exponent=exponent, max_length=longest)
        case GraphBeamSettings():
            beam = GraphBeam(
                size=settings.size,
                num_best=settings.num_best,
                length_exponent=settings.length_exponent,
                max_length=longest,
                language=language,
                language_weight=settings.language_weight,
                token_bonus=settings.token_bonus,
            )
            return [
                [
                    (_as_hypothesis(text.path, text.log_probability, text.score), text.path)
                    for text in texts
                ]
                for texts in beam_texts(graph, beam)
            ]
        case _:
            paths = greedy_paths(graph)
    return [[(_as_hypothesis(path, path.total, None), path)] for path in paths]


def _as_hypothesis(path: GraphPath, total: float, score: float | None) -> Hypothesis:
    """A path without <s>. The log-probability of a token is that of its vertex, given the one
    before, and of the token there; without another score, hypotheses are ordered by the mean."""
    values = tuple(
        token + link
        for token, link in zip(
            path.log_probabilities[1:], path.link_log_probabilities[1:], strict=True
        )
    )
    mean = sum(values) / max(1, len(values))
    return Hypothesis(
        tuple(path.tokens[1:-1]), total, mean if score is None else score, values, finished=True
    )


def _record(graph: Graph, row: int, path: GraphPath) -> GraphRecord:
    """The vertices of one sentence, and the path through them."""
    count = int(graph.vertex_count[row])
    shown = min(count, MOST_PLACES)
    tokens, values = possible_choices(
        graph.tokens[row, :shown, :NUM_SHOWN], graph.log_probabilities[row, :shown, :NUM_SHOWN]
    )
    links, link_values = best_choices(graph.links[row, :count, :count])
    return GraphRecord(
        tokens=tokens,
        log_probabilities=values,
        links=links,
        link_log_probabilities=link_values,
        path=tuple(vertex for vertex in path.vertices if vertex < shown),
        num_vertices=count,
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
