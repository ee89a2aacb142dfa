"""Computes the sum over all paths of a graph in plain torch, as products of vectors with one
matrix.

In probability space a step of the recursion is a product of the prefix vector with exp(links),
which is computed once, so a step costs a matrix-vector product and no logarithm:

    a_j = emitted_j ⊙ (a_{j-1} P)      prefixes: labels 0 … j, the last at this vertex
    c_j = emitted_j ⊙ (P c_{j+1})      suffixes: labels j … M-1, the first at this vertex
    posterior of (label j, vertex i)   a_j[i] (P c_{j+1})[i] / total
    posterior of (link i → k)          P[i,k] Σ_j a_j[i] c_{j+1}[k] / total

After each step a vector is divided by its greatest entry, whose logarithm is added up separately.
Entries that are smaller by more than 345 nats are lost, in fp64. That is harmless unless the paths
that score best at first cannot be continued. Whether it happened is known, not hoped: next to `a`,
which only loses, a second vector only gains (each loss is replaced by an upper bound of it), so the
total lies between two numbers. A pair is `certain` if these agree and if the posteriors of each
label sum to one; other pairs have to be computed in log space.

Tested against: the recursion in log space and enumeration of all paths; adversarial pairs are found
uncertain (tests/training/parallel/test_graph_loss.py).
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

LOST = 1e-150
"""Smaller entries become zero: the square is still a normal number of fp64, and products of numbers
that are not normal are slow on a CPU."""
AGREE = 1e-6
"""The greatest distance, in nats, of the two bounds of a certain pair."""


class PathSums(NamedTuple):
    """The likelihood of a pair's labels under its graph, and its derivatives."""

    log_likelihood: Float[Tensor, " pair"]
    certain: Bool[Tensor, " pair"]
    by_emission: Float[Tensor, "pair vertex label"] | None
    """The posterior probability that a label is emitted at a vertex."""
    by_link: Float[Tensor, "pair vertex successor"] | None
    """The posterior probability that a path uses a link."""


class _Walk(NamedTuple):
    """One direction: vectors divided by exp(height)."""

    states: Float[Tensor, "label pair vertex"]
    heights: Float[Tensor, "label pair"]


def possible_cells(
    vertex_count: Int[Tensor, " pair"],
    label_count: Int[Tensor, " pair"],
    *,
    num_vertices: int,
    num_labels: int,
) -> Bool[Tensor, "label pair vertex"]:
    """Where a label can be emitted: label j needs j vertices before it, and one after it for each
    label that follows; the first stands at the first vertex and the last at the last."""
    label = torch.arange(num_labels, device=vertex_count.device)[:, None, None]
    vertex = torch.arange(num_vertices, device=vertex_count.device)
    slack = (vertex_count - label_count)[:, None]
    labels = label_count[:, None]
    inside = (vertex >= label) & (vertex <= slack + label) & (label < labels)
    starts = (label > 0) | (vertex == 0)
    ends = (label < labels - 1) | (vertex == vertex_count[:, None] - 1)
    return inside & starts & ends


def sum_paths(
    emissions: Float[Tensor, "pair vertex label"],
    links: Float[Tensor, "pair vertex successor"],
    vertex_count: Int[Tensor, " pair"],
    label_count: Int[Tensor, " pair"],
    *,
    gradients: bool,
) -> PathSums:
    """Pairs without labels (`label_count` 0) have the likelihood 0 and no posteriors."""
    num_vertices, num_labels = emissions.shape[1:]
    possible = possible_cells(
        vertex_count, label_count, num_vertices=num_vertices, num_labels=num_labels
    )
    scores = emissions.permute(2, 0, 1).double().masked_fill(~possible, -torch.inf)
    peaks = scores.amax(-1)
    peaks = torch.where(peaks > -torch.inf, peaks, 0.0)
    emitted = _lose((scores - peaks[..., None]).exp())
    passed = _lose(links.double().exp())
    prefixes, lower, upper = _walk_forward(emitted, peaks, possible, passed, label_count)
    certain = (upper - lower <= AGREE) | (label_count == 0)
    if not gradients:
        return PathSums(lower, certain, None, None)
    suffixes, rest = _walk_backward(emitted, peaks, passed, label_count)
    level = prefixes.heights + rest.heights - lower
    by_emission = prefixes.states * rest.states * level.exp()[..., None]
    labelled = torch.arange(num_labels, device=links.device)[:, None] < label_count
    missing = (by_emission.sum(-1) - labelled.double()).abs().amax(0)
    level = (prefixes.heights[:-1] + suffixes.heights[1:] - lower).exp()
    before = (prefixes.states[:-1] * level[..., None]).permute(1, 2, 0)
    by_link = (before @ suffixes.states[1:].transpose(0, 1)).mul_(passed)
    # A comparison with NaN is false, so what overflowed is not certain.
    return PathSums(lower, certain & (missing <= AGREE), by_emission.permute(1, 2, 0), by_link)


def _lose(x: Tensor) -> Tensor:
    return torch.where(x < LOST, 0.0, x)


def _walk_forward(
    emitted: Float[Tensor, "label pair vertex"],
    peaks: Float[Tensor, "label pair"],
    possible: Bool[Tensor, "label pair vertex"],
    passed: Float[Tensor, "pair vertex successor"],
    label_count: Int[Tensor, " pair"],
) -> tuple[_Walk, Float[Tensor, " pair"], Float[Tensor, " pair"]]:
    """Prefixes, and a lower and an upper bound of the log-likelihood."""
    num_labels, num_pairs, num_vertices = emitted.shape
    gained = torch.where(possible, LOST, 0.0).to(emitted)
    both_emitted = torch.stack([emitted, emitted + gained], dim=2)
    both = both_emitted[0]  # [pair, bound, vertex]
    height = emitted.new_zeros(num_pairs, 2)
    states, heights = [], []
    for label in range(num_labels):
        if label:
            both = both @ passed
            both[:, 1] += num_vertices * LOST  # what links below the limit could have added
            both = both * both_emitted[label]
        top = both.amax(-1)
        top = torch.where(top > 0, top, 1.0)
        both = both / top[..., None]
        both = torch.stack([_lose(both[:, 0]), both[:, 1] + gained[label]], dim=1)
        height = height + top.log() + peaks[label][:, None]
        states.append(both[:, 0])
        heights.append(height[:, 0])
    prefixes = _Walk(torch.stack(states), torch.stack(heights))
    # The last label of a pair stands at one vertex, where the divided vector is one, or lost.
    last = (label_count - 1).clamp_min(0)
    arrived = prefixes.states.sum(-1).gather(0, last[None])[0] > 0
    lower = torch.where(arrived | (label_count == 0), height[:, 0], -torch.inf)
    return prefixes, lower, height[:, 1]


def _walk_backward(
    emitted: Float[Tensor, "label pair vertex"],
    peaks: Float[Tensor, "label pair"],
    passed: Float[Tensor, "pair vertex successor"],
    label_count: Int[Tensor, " pair"],
) -> tuple[_Walk, _Walk]:
    """Suffixes with and without the emission of their first label."""
    num_labels, num_pairs, _ = emitted.shape
    turned = passed.transpose(1, 2)
    state, height = torch.zeros_like(emitted[0]), emitted.new_zeros(num_pairs)
    states, heights, rests, rest_heights = [], [], [], []
    for label in reversed(range(num_labels)):
        rest = (state[:, None] @ turned)[:, 0]
        rest = torch.where((label_count == label + 1)[:, None], 1.0, rest)
        rests.append(rest)
        rest_heights.append(height)
        state = emitted[label] * rest
        top = state.amax(-1)
        top = torch.where(top > 0, top, 1.0)
        state = _lose(state / top[:, None])
        height = height + top.log() + peaks[label]
        states.append(state)
        heights.append(height)
    return (
        _Walk(torch.stack(states[::-1]), torch.stack(heights[::-1])),
        _Walk(torch.stack(rests[::-1]), torch.stack(rest_heights[::-1])),
    )
