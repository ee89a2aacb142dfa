"""Beam search over texts against the probability of every text, by enumeration of all paths."""

import itertools
import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from headwise.decoding.parallel.graph import Graph, lookahead_paths, rank_vertices
from headwise.decoding.parallel.graph_beam import GraphBeam, beam_texts
from tests.training.parallel.graphs import path_scores, paths, random_graph

VERTICES, WORDS = [6, 1, 4, 2], 3


class Bigrams:
    """A language model that knows the word before."""

    def __init__(self, generator: torch.Generator) -> None:
        self.table = torch.randn(WORDS + 1, WORDS, generator=generator).double().log_softmax(-1)

    def score_next(
        self, prefixes: Sequence[tuple[int, ...]], tokens: Sequence[int]
    ) -> list[list[float]]:
        before = [prefix[-1] if prefix else WORDS for prefix in prefixes]
        return [[self.table[last, token].item() for token in tokens] for last in before]

    def of_text(self, text: tuple[int, ...]) -> float:
        return sum(self.score_next([text[:i]], [one])[0][0] for i, one in enumerate(text))


def make(generator: torch.Generator) -> tuple[Tensor, Graph]:
    words_at = torch.randn(len(VERTICES), 6, WORDS, generator=generator).double().log_softmax(-1)
    links = random_graph(generator, VERTICES)
    return words_at, rank_vertices(words_at, links, torch.tensor(VERTICES), count=WORDS)


def all_texts(words_at: Tensor, links: Tensor, count: int) -> dict[tuple[int, ...], float]:
    """The log-probability of every text."""
    found = {}
    for length in range(1, count + 1):
        walks = list(paths(count, length))
        for text in itertools.product(range(WORDS), repeat=length) if walks else []:
            scores = path_scores(words_at[:, list(text)], links, walks)
            found[text] = scores.logsumexp(0).item()
    return found


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("weight", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("bonus", [0.0, -0.6, 1.9])
def test_a_wide_beam_finds_the_best_texts(
    generator: torch.Generator, exponent: float, weight: float, bonus: float
) -> None:
    words_at, graph = make(generator)
    language = Bigrams(generator)
    beam = GraphBeam(
        size=3**5,
        num_best=4,
        length_exponent=exponent,
        language=language if weight else None,
        language_weight=weight,
        token_bonus=bonus,
    )
    for pair, texts in enumerate(beam_texts(graph, beam)):
        known = all_texts(words_at[pair], graph.links[pair], VERTICES[pair])
        assert sum(map(math.exp, known.values())) == pytest.approx(1)
        scores = {
            text: (total + weight * language.of_text(text) + bonus * len(text))
            / len(text) ** exponent
            for text, total in known.items()
        }
        best = sorted(scores, key=lambda text: -scores[text])[: beam.num_best]
        assert [tuple(text.tokens) for text in texts] == best
        for text in texts:
            assert text.score == pytest.approx(scores[tuple(text.tokens)])
            assert text.log_probability == pytest.approx(known[tuple(text.tokens)])


def test_the_path_of_a_text_is_its_best_one(generator: torch.Generator) -> None:
    words_at, graph = make(generator)
    for pair, texts in enumerate(beam_texts(graph, GraphBeam(num_best=3))):
        for text in texts:
            walks = list(paths(VERTICES[pair], len(text.tokens)))
            scores = path_scores(words_at[pair][:, text.tokens], graph.links[pair], walks)
            assert tuple(text.path.vertices) == walks[int(scores.argmax())]
            assert text.path.total == pytest.approx(scores.max().item())
            assert text.log_probability >= text.path.total - 1e-9


def test_a_narrow_beam_gives_texts_of_the_graph_in_order(generator: torch.Generator) -> None:
    words_at, graph = make(generator)
    for pair, texts in enumerate(beam_texts(graph, GraphBeam(size=2, num_best=2))):
        known = all_texts(words_at[pair], graph.links[pair], VERTICES[pair])
        assert texts
        assert [text.score for text in texts] == sorted((t.score for t in texts), reverse=True)
        for text in texts:
            # Prefixes that fell off the beam take nothing from the probability of the others.
            assert text.log_probability == pytest.approx(known[tuple(text.tokens)])


def test_merging_prefers_a_text_with_many_paths() -> None:
    """Word 0 stands at one vertex with probability 0.4, word 1 at three with 0.2 each."""
    links = torch.full((1, 6, 6), -torch.inf)
    links[0, 0, 1:5] = torch.tensor([0.4, 0.2, 0.2, 0.2]).log()
    links[0, 1:5, 5] = 0.0
    words_at = torch.full((1, 6, 4), -torch.inf)
    words_at[0, 0, 2] = words_at[0, 1, 0] = words_at[0, 5, 3] = 0.0
    words_at[0, 2:5, 1] = 0.0
    graph = rank_vertices(words_at, links, torch.tensor([6]), count=1)
    assert lookahead_paths(graph)[0].tokens == [2, 0, 3]
    [[text]] = beam_texts(graph, GraphBeam(size=2))
    assert text.tokens == [2, 1, 3]
    assert math.exp(text.log_probability) == pytest.approx(0.6)


def test_where_no_text_ends_in_time_the_lookahead_path_is_given(generator: torch.Generator) -> None:
    _, graph = make(generator)
    found = beam_texts(graph, GraphBeam(max_length=1))
    assert [texts[0].path for texts in found] == lookahead_paths(graph)
