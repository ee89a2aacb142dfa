"""Fuzzy alignment: how many n-grams of the reference a walk through the graph is expected to write.

The graph's loss (graph_loss.py) counts only paths that emit the whole reference. A path with one
word too many counts nothing, however good it is. This objective counts n-grams over all paths:

    arrival(k)  = Σ_i arrival(i) P(k | i),  arrival(0) = 1       how likely a walk passes vertex k
    E[count g]  = Σ over i → … → k of arrival(i) p(g_1 | i) P(… | i) … p(g_n | k)
    precision   = Σ_g min(E[count g], reference count g) / E[number of n-grams]
    brevity     = min(1, exp(1 - reference length / E[length]))
    loss        = -brevity · precision

The sum runs over the distinct n-grams of the reference. As in the paper the minimum is taken after
the expectation, which is what makes it computable: n-1 products of matrices. Models are trained
with the graph's loss first and then fine-tuned with this one, n = 2.

Ma et al. 2023, Fuzzy Alignments in Directed Acyclic Graph for Non-Autoregressive Machine
Translation (arXiv 2303.06662). Tested against: counts over all paths one by one.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


class FuzzyAlignment(NamedTuple):
    """The loss of each pair and what it consists of, [pair]."""

    loss: Float[Tensor, " pair"]
    """Minus brevity · precision; zero, without gradient, where `counted` is false."""
    precision: Float[Tensor, " pair"]
    brevity: Float[Tensor, " pair"]
    expected_length: Float[Tensor, " pair"]
    counted: Bool[Tensor, " pair"]
    """Whether reference and graph are long enough to have an n-gram."""


def fuzzy_alignment(
    emissions: Float[Tensor, "pair vertex label"],
    links: Float[Tensor, "pair vertex successor"],
    labels: Int[Tensor, "pair label"],
    vertex_count: Int[Tensor, " pair"],
    label_count: Int[Tensor, " pair"],
    *,
    order: int = 2,
) -> FuzzyAlignment:
    """`emissions` and `links` as for `graph_loss`; `labels` are the tokens of the reference, whose
    log-probabilities at each vertex the emissions are."""
    with torch.autocast(links.device.type, enabled=False):  # sums of many small probabilities
        passed = links.to(torch.promote_types(links.dtype, torch.float32)).exp()
        arrival = arrivals(passed, vertex_count)
        expected_length = arrival.sum(-1)
        total = arrival
        for _ in range(order - 1):
            total = (total[:, None] @ passed)[:, 0]
        matched = _expected_counts(emissions, passed, arrival, label_count, order=order)
    in_reference = reference_counts(labels, label_count, order=order)
    hits = torch.minimum(matched, in_reference.to(matched)).sum(-1)
    counted = (label_count >= order) & (vertex_count >= order)
    precision = hits / torch.where(counted, total.sum(-1), 1.0)
    precision = torch.where(counted, precision, 0.0)
    ratio = label_count / expected_length.clamp_min(1.0)
    brevity = (1 - ratio).clamp_max(0.0).exp()
    return FuzzyAlignment(-brevity * precision, precision, brevity, expected_length, counted)


def arrivals(
    passed: Float[Tensor, "pair vertex successor"], vertex_count: Int[Tensor, " pair"]
) -> Float[Tensor, "pair vertex"]:
    """The probability that a walk from vertex 0 passes each vertex.

    It is the solution of a (I - P) = (1, 0, 0, …), found by substitution because P leads forward
    only. All terms have the same sign, so no digits are lost.
    """
    num_vertices = passed.shape[1]
    identity = torch.eye(num_vertices, dtype=passed.dtype, device=passed.device)
    start = identity[:, :1].expand(len(passed), -1, -1)
    system = identity - passed.transpose(1, 2)
    found = torch.linalg.solve_triangular(system, start, upper=False, unitriangular=True)[..., 0]
    inside = torch.arange(num_vertices, device=passed.device) < vertex_count[:, None]
    return torch.where(inside, found, 0.0)


def _expected_counts(
    emissions: Tensor,
    passed: Tensor,
    arrival: Tensor,
    label_count: Int[Tensor, " pair"],
    *,
    order: int,
) -> Float[Tensor, "pair start"]:
    """How often the n-gram of the reference that starts at a label is written; zero past its
    end."""
    num_starts = max(emissions.shape[2] - order + 1, 0)
    start = torch.arange(num_starts, device=emissions.device)
    real = start < (label_count - order + 1)[:, None]
    emitted = emissions.to(passed.dtype).exp().transpose(1, 2)  # [pair, label, vertex]
    walked = arrival[:, None] * emitted[:, :num_starts]
    for place in range(1, order):
        walked = (walked @ passed) * emitted[:, place : place + num_starts]
    return torch.where(real, walked.sum(-1), 0.0)


def reference_counts(
    labels: Int[Tensor, "pair label"], label_count: Int[Tensor, " pair"], *, order: int
) -> Int[Tensor, "pair start"]:
    """How often the reference has the n-gram, at the first place where it stands; zero at the
    others, so that each counts once."""
    num_starts = max(labels.shape[1] - order + 1, 0)
    start = torch.arange(num_starts, device=labels.device)
    real = start < (label_count - order + 1)[:, None]
    same = real[:, :, None] & real[:, None, :]
    for place in range(order):
        token = labels[:, place : place + num_starts]
        same = same & (token[:, :, None] == token[:, None, :])
    repeated = (same & (start[None, :] < start[:, None])).any(-1)
    return torch.where(repeated, 0, same.sum(-1))
