"""Searches for one path through a graph of vertices: greedy, lookahead, and joint Viterbi.

The model gives each vertex a distribution over tokens and one over later vertices (links). A
translation is the tokens along a path from vertex 0 to the last vertex of its sentence:

    greedy       from vertex i to argmax_k link(i, k); there the best token
    lookahead    from vertex i to argmax_k link(i, k) + w · log p(best token | k)
    viterbi      the path of highest Σ link + Σ log p(best token), divided by length^β

The first two decide for every vertex at once where it would go, and then follow the decisions.
Viterbi finds the best path of every length n by a recursion over n and takes the length whose score
is best; without a length penalty (β = 0) it prefers short outputs. A beam search over texts is in
graph_beam.py.

Huang et al. 2022 (arXiv 2205.07459), section 3.4; Shao et al. 2022, Viterbi Decoding of Directed
Acyclic Transformer (arXiv 2210.05193). Tested against: enumeration of all paths; padding changes
nothing.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Graph(NamedTuple):
    """What a model says about a batch of sentences; the best tokens of each vertex come first."""

    tokens: Int[Tensor, "sentence vertex rank"]
    log_probabilities: Float[Tensor, "sentence vertex rank"]
    links: Float[Tensor, "sentence vertex successor"]
    """Log-probabilities of successors; -inf where there is no link."""
    vertex_count: Int[Tensor, " sentence"]


@dataclass(frozen=True)
class GraphPath:
    """One way through the graph of a sentence."""

    tokens: list[int]
    vertices: list[int]
    log_probabilities: list[float]
    """Of each token at its vertex."""
    link_log_probabilities: list[float]
    """Of the link into each vertex; 0 for the first."""

    @property
    def total(self) -> float:
        """The log-probability of the path with its tokens."""
        return sum(self.log_probabilities) + sum(self.link_log_probabilities)


def rank_vertices(
    log_probabilities: Float[Tensor, "sentence vertex vocab"],
    links: Float[Tensor, "sentence vertex successor"],
    vertex_count: Int[Tensor, " sentence"],
    *,
    count: int = 1,
) -> Graph:
    """The graph with the `count` best tokens of each vertex."""
    values, tokens = log_probabilities.topk(min(count, log_probabilities.shape[-1]), dim=-1)
    return Graph(tokens, values, links, vertex_count)


def greedy_paths(graph: Graph) -> list[GraphPath]:
    """Always the most probable link."""
    return _follow(graph, graph.links.argmax(-1))


def lookahead_paths(graph: Graph, *, token_weight: float = 1.0) -> list[GraphPath]:
    """Always the link that is best together with the best token of the vertex it leads to."""
    reached = token_weight * graph.log_probabilities[:, None, :, 0]
    return _follow(graph, (graph.links + reached).argmax(-1))


def viterbi_paths(
    graph: Graph, *, length_exponent: float = 1.0, max_length: int | None = None
) -> list[GraphPath]:
    """The path whose log-probability divided by length^`length_exponent` is highest.

    Lengths count the vertices of a path. A limit saves time: the recursion has that many steps.
    """
    num_sentences, num_vertices, _ = graph.links.shape
    longest = num_vertices if max_length is None else min(max(max_length, 2), num_vertices)
    token = graph.log_probabilities[..., 0]
    start = torch.zeros_like(token[0], dtype=torch.bool)
    start[0] = True
    scores = [token.masked_fill(~start, -torch.inf)]
    for _ in range(1, longest):
        scores.append((scores[-1][:, :, None] + graph.links).amax(1) + token)
    sentence = torch.arange(num_sentences, device=token.device)
    vertex = graph.vertex_count - 1
    totals = torch.stack([score[sentence, vertex] for score in scores])
    lengths = torch.arange(1, longest + 1, device=token.device)
    length = (totals / lengths[:, None].to(totals) ** length_exponent).argmax(0) + 1
    visited = torch.zeros((num_sentences, longest), dtype=torch.long, device=token.device)
    for place in reversed(range(longest)):
        if place + 1 < longest:
            before = (scores[place] + graph.links[sentence, :, vertex]).argmax(-1)
            vertex = torch.where(place + 1 < length, before, vertex)
        visited[:, place] = vertex
    return _read_paths(graph, visited.cpu(), length.tolist())


def _follow(graph: Graph, successor: Int[Tensor, "sentence vertex"]) -> list[GraphPath]:
    """The paths that arise when every vertex has decided for one successor."""
    successor, last = successor.cpu(), graph.vertex_count.cpu() - 1
    vertex = torch.zeros_like(last)
    visited = [vertex]
    while not torch.equal(vertex, last):
        following = successor.gather(1, vertex[:, None])[:, 0]
        vertex = torch.where(vertex < last, following, vertex)
        visited.append(vertex)
    table = torch.stack(visited, dim=1)
    return _read_paths(graph, table, ((table < last[:, None]).sum(1) + 1).tolist())


def _read_paths(
    graph: Graph, visited: Int[Tensor, "sentence place"], lengths: list[int]
) -> list[GraphPath]:
    """Tokens and log-probabilities along the first vertices of each row."""
    at = visited.to(graph.links.device)
    sentence = torch.arange(len(at), device=at.device)[:, None]
    entered = graph.links[sentence, at[:, :-1], at[:, 1:]]
    columns = (
        graph.tokens[..., 0].gather(1, at).tolist(),
        at.tolist(),
        graph.log_probabilities[..., 0].gather(1, at).tolist(),
        torch.nn.functional.pad(entered, (1, 0)).tolist(),
    )
    return [
        GraphPath(*(column[row][:length] for column in columns))
        for row, length in enumerate(lengths)
    ]
