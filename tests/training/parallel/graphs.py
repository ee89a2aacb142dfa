"""Random graphs for tests, and all their paths one by one."""

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor


def random_graph(
    generator: torch.Generator, counts: list[int], *, width: int | None = None, spread: float = 1.0
) -> Tensor:
    """Links [pair, vertex, vertex], normalised over later vertices; -inf elsewhere."""
    size = width or max(counts)
    logits = spread * torch.randn(len(counts), size, size, generator=generator, dtype=torch.double)
    links = torch.full_like(logits, -torch.inf)
    for pair, count in enumerate(counts):
        for vertex in range(count - 1):
            later = slice(vertex + 1, count)
            links[pair, vertex, later] = logits[pair, vertex, later].log_softmax(0)
    return links


def random_emissions(
    generator: torch.Generator, num_pairs: int, num_vertices: int, num_labels: int
) -> Tensor:
    """Log-probabilities of labels at vertices, as different vocabulary entries would have."""
    logits = 2 * torch.randn(
        num_pairs, num_vertices, num_labels + 3, generator=generator, dtype=torch.double
    )
    return logits.log_softmax(-1)[..., :num_labels]


def paths(num_vertices: int, num_labels: int | None = None) -> Iterator[tuple[int, ...]]:
    """All increasing walks from vertex 0 to the last, of one length or of all."""
    lengths = range(1, num_vertices + 1) if num_labels is None else [num_labels]
    for length in lengths:
        if length == 1:
            if num_vertices == 1:
                yield (0,)
            continue
        for inner in itertools.combinations(range(1, num_vertices - 1), length - 2):
            if num_vertices > 1:
                yield (0, *inner, num_vertices - 1)


def path_scores(emissions: Tensor, links: Tensor, walks: list[tuple[int, ...]]) -> Tensor:
    """The log-probability of each walk of one pair (no padding), its labels included."""
    found = []
    for walk in walks:
        score = sum(emissions[vertex, label] for label, vertex in enumerate(walk))
        for before, after in itertools.pairwise(walk):
            score = score + links[before, after]
        found.append(score)
    return torch.stack(found)
