"""Searches for a path against all paths one by one."""

import itertools
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from headwise.decoding.parallel.graph import (
    Graph,
    GraphPath,
    greedy_paths,
    lookahead_paths,
    rank_vertices,
    viterbi_paths,
)
from tests.training.parallel.graphs import paths, random_graph

VERTICES, WORDS = [7, 2, 6, 1, 5], 5


def make(generator: torch.Generator, *, width: int = 8, count: int = 1) -> tuple[Tensor, Graph]:
    """Log-probabilities of words, and the graph of their best."""
    words_at = (2 * torch.randn(len(VERTICES), width, WORDS, generator=generator)).double()
    words_at = words_at.log_softmax(-1)
    links = random_graph(generator, VERTICES, width=width, spread=2)
    return words_at, rank_vertices(words_at, links, torch.tensor(VERTICES), count=count)


def total_of(words_at: Tensor, links: Tensor, walk: tuple[int, ...]) -> float:
    score = sum(words_at[vertex].max().item() for vertex in walk)
    return score + sum(links[i, k].item() for i, k in itertools.pairwise(walk))


def check_contents(path: GraphPath, words_at: Tensor, links: Tensor) -> None:
    """What a path says of itself is what the graph says of its vertices."""
    assert path.tokens == words_at[path.vertices].argmax(-1).tolist()
    assert path.log_probabilities == words_at[path.vertices].amax(-1).tolist()
    entered = [links[i, k].item() for i, k in itertools.pairwise(path.vertices)]
    assert path.link_log_probabilities == [0.0, *entered]
    assert path.total == pytest.approx(total_of(words_at, links, tuple(path.vertices)))


@pytest.mark.parametrize("weight", [0.0, 1.0, 2.5])
def test_each_step_of_a_path_is_the_best_one(generator: torch.Generator, weight: float) -> None:
    words_at, graph = make(generator)
    search = partial(lookahead_paths, token_weight=weight) if weight else greedy_paths
    for pair, path in enumerate(search(graph)):
        check_contents(path, words_at[pair], graph.links[pair])
        assert path.vertices[0] == 0
        assert path.vertices[-1] == VERTICES[pair] - 1
        for before, after in itertools.pairwise(path.vertices):
            scores = {
                vertex: graph.links[pair, before, vertex].item()
                + weight * words_at[pair, vertex].max().item()
                for vertex in range(before + 1, VERTICES[pair])
            }
            assert after == max(scores, key=scores.__getitem__)


@pytest.mark.parametrize("exponent", [0.0, 1.0, 1.7])
@pytest.mark.parametrize("max_length", [None, 3])
def test_viterbi_finds_the_best_of_all_paths(
    generator: torch.Generator, exponent: float, max_length: int | None
) -> None:
    words_at, graph = make(generator)
    found = viterbi_paths(graph, length_exponent=exponent, max_length=max_length)
    for pair, path in enumerate(found):
        scores = {
            walk: total_of(words_at[pair], graph.links[pair], walk) / len(walk) ** exponent
            for walk in paths(VERTICES[pair])
            if max_length is None or len(walk) <= max_length
        }
        assert tuple(path.vertices) == max(scores, key=scores.__getitem__)
        check_contents(path, words_at[pair], graph.links[pair])


def test_a_larger_exponent_gives_longer_paths(generator: torch.Generator) -> None:
    _, graph = make(generator)
    lengths = [
        [len(path.tokens) for path in viterbi_paths(graph, length_exponent=exponent)]
        for exponent in (0.0, 1.0, 4.0)
    ]
    for shorter, longer in itertools.pairwise(lengths):
        assert all(one <= other for one, other in zip(shorter, longer, strict=True))
    assert lengths[0] < lengths[-1]


@pytest.mark.parametrize("search", [greedy_paths, lookahead_paths, viterbi_paths])
def test_padding_changes_nothing(
    generator: torch.Generator, search: Callable[[Graph], list[GraphPath]]
) -> None:
    _, graph = make(generator, width=11)
    together = search(graph)
    for pair, count in enumerate(VERTICES):
        own = slice(pair, pair + 1)
        alone = Graph(
            graph.tokens[own, :count],
            graph.log_probabilities[own, :count],
            graph.links[own, :count, :count],
            graph.vertex_count[own],
        )
        assert search(alone) == [together[pair]]
