"""GPU kernels for the recursion over the paths of a graph (training/parallel/graph_loss.py).

In torch every label costs a launch over all pairs of vertices of all sentences, padding included.
Here one program walks through all labels of one pair, with as many vertices and labels as that pair
has. The table of links is read again at each label, from the cache next to the processor; the
vector of prefixes is written once a label, where the next step and the gradient read it:

    _walk        prefixes from vertex 0, or suffixes from the last vertex; or the best prefix
    _link_sums   for a tile of links, Σ over labels of prefix · link · suffix / total
    _trace       the best path, back from the last vertex

Everything is in log space with a running maximum per vertex, so nothing can underflow. Each stored
vector is relative to the greatest entry of the one before (`offset`, in fp64), so that fp32 keeps
its digits when a sentence has a log-probability of -500.

Tested against: `plain_graph_loss` and `best_path` in torch, in Triton's interpreter.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

OWN, OTHER = 128, 32
"""Vertices of a tile: those whose entry is computed, and those it is computed from."""
SIDE = 64
"""Vertices to a side of a tile of links whose gradient one program computes."""
WARPS = 8


@triton.jit
def _tile(
    state_at, link_at, own, other, vertices, num_vertices, shift,
    BACK: tl.constexpr,
):  # fmt: skip
    """Entry of the vector before + link, [earlier vertex, later vertex]; -inf without a link."""
    nothing = float("-inf")
    known = tl.load(state_at + other, mask=other < vertices, other=nothing) - shift
    if BACK:
        row, column = own, other
        scores = known[None, :]
    else:
        row, column = other, own
        scores = known[:, None]
    real = (row[:, None] < column[None, :]) & (column < vertices)[None, :]
    cell = link_at + row[:, None] * num_vertices + column[None, :]
    return scores + tl.load(cell, mask=real, other=nothing)


@triton.jit
def _walk(
    emission_at, link_at, state_at, offset_at, vertices_at, labels_at, order_at, num_vertices,
    num_labels, BACK: tl.constexpr, BEST: tl.constexpr, OWN: tl.constexpr, OTHER: tl.constexpr,
):  # fmt: skip
    pair = tl.load(order_at + tl.program_id(0))
    vertices, labels = tl.load(vertices_at + pair), tl.load(labels_at + pair)
    emission_at += pair * num_labels * num_vertices
    state_at += pair * num_labels * num_vertices
    link_at += pair * num_vertices * num_vertices
    offset_at += pair * num_labels
    nothing = float("-inf")
    axis: tl.constexpr = 1 if BACK else 0
    begin = vertices - 1 if BACK else 0
    label = labels - 1 if BACK else 0
    top = tl.load(emission_at + label * num_vertices + begin, mask=labels > 0, other=nothing)
    for first in range(0, tl.where(labels > 0, vertices, 0), OWN):
        own = first + tl.arange(0, OWN)
        state = tl.where(own == begin, top, nothing)
        tl.store(state_at + label * num_vertices + own, state, mask=own < vertices)
    offset = tl.zeros((), tl.float64)
    tl.store(offset_at + label, offset, mask=labels > 0)
    for step in range(1, labels):
        before = state_at + label * num_vertices
        label = labels - 1 - step if BACK else step
        shift = tl.where(top > nothing, top, 0.0)
        offset += shift.to(tl.float64)
        tl.store(offset_at + label, offset)
        top = shift * 0.0 + nothing
        tl.debug_barrier()  # the vector before is written by all threads, and read by all
        for first in range(0, vertices, OWN):
            own = first + tl.arange(0, OWN)
            # Links lead to later vertices: tiles on the other side of the diagonal are empty.
            start = first if BACK else 0
            stop = vertices if BACK else tl.minimum(first + OWN, vertices)
            height = tl.full((OWN, OTHER) if BACK else (OTHER, OWN), nothing, tl.float32)
            for other in range(start, stop, OTHER):
                place = other + tl.arange(0, OTHER)
                scores = _tile(before, link_at, own, place, vertices, num_vertices, shift, BACK)
                height = tl.maximum(height, scores)
            highest = tl.max(height, axis)
            state = highest
            if not BEST:
                safe = tl.where(highest > nothing, highest, 0.0)
                level = safe[:, None] if BACK else safe[None, :]
                total = tl.zeros((OWN, OTHER) if BACK else (OTHER, OWN), tl.float32)
                for other in range(start, stop, OTHER):
                    place = other + tl.arange(0, OTHER)
                    scores = _tile(before, link_at, own, place, vertices, num_vertices, shift, BACK)
                    total += tl.exp(scores - level)
                mass = tl.sum(total, axis)
                state = tl.where(mass > 0, safe + tl.log(tl.where(mass > 0, mass, 1.0)), nothing)
            here = label * num_vertices + own
            state += tl.load(emission_at + here, mask=own < vertices, other=nothing)
            tl.store(state_at + here, state, mask=own < vertices)
            top = tl.maximum(top, tl.max(state, 0))


@triton.jit
def _link_sums(
    link_at, prefix_at, suffix_at, level_at, out_at, vertices_at, labels_at, num_vertices,
    num_labels, SIDE: tl.constexpr,
):  # fmt: skip
    pair = tl.program_id(0).to(tl.int64)
    row_first, column_first = tl.program_id(1) * SIDE, tl.program_id(2) * SIDE
    vertices, labels = tl.load(vertices_at + pair), tl.load(labels_at + pair)
    if (row_first <= column_first) & (column_first < vertices) & (labels > 1):
        row, column = row_first + tl.arange(0, SIDE), column_first + tl.arange(0, SIDE)
        real = (row[:, None] < column[None, :]) & (column < vertices)[None, :]
        cell = pair * num_vertices * num_vertices + row[:, None] * num_vertices + column[None, :]
        nothing = float("-inf")
        link = tl.load(link_at + cell, mask=real, other=nothing)
        total = tl.zeros((SIDE, SIDE), tl.float32)
        for label in range(labels - 1):
            level = tl.load(level_at + pair * num_labels + label)
            here = (pair * num_labels + label) * num_vertices
            prefix = tl.load(prefix_at + here + row, mask=row < vertices, other=nothing)
            suffix = tl.load(
                suffix_at + here + num_vertices + column, mask=column < vertices, other=nothing
            )
            total += tl.exp(prefix[:, None] + (suffix + level)[None, :] + link)
        tl.store(out_at + cell, total, mask=real)


@triton.jit
def _trace(
    link_at, state_at, vertices_at, labels_at, path_at, num_vertices, num_labels,
    OTHER: tl.constexpr,
):  # fmt: skip
    pair = tl.program_id(0).to(tl.int64)
    vertices, labels = tl.load(vertices_at + pair), tl.load(labels_at + pair)
    link_at += pair * num_vertices * num_vertices
    vertex = vertices - 1
    tl.store(path_at + pair * num_labels + labels - 1, vertex, mask=labels > 0)
    for step in range(1, labels):
        label = labels - 1 - step
        state = state_at + (pair * num_labels + label) * num_vertices
        best = float("-inf")
        found = vertex * 0
        for first in range(0, vertex, OTHER):
            own = first + tl.arange(0, OTHER)
            score = tl.load(state + own, mask=own < vertex, other=float("-inf"))
            score += tl.load(
                link_at + own.to(tl.int64) * num_vertices + vertex,
                mask=own < vertex, other=float("-inf"),
            )  # fmt: skip
            value, winner = tl.max(score, 0, return_indices=True)
            found = tl.where(value > best, first + winner, found)
            best = tl.maximum(best, value)
        vertex = found
        tl.store(path_at + pair * num_labels + label, vertex)


class _Inputs(NamedTuple):
    """What every kernel reads, laid out for it."""

    emissions: Tensor
    """[pair, label, vertex]."""
    links: Tensor
    vertex_count: Tensor
    label_count: Tensor
    order: Tensor
    """Pairs with most work first, so that no long one is left alone at the end."""

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Pairs, labels and vertices."""
        num_pairs, num_labels, num_vertices = self.emissions.shape
        return num_pairs, num_labels, num_vertices


def _lay_out(
    emissions: Tensor, links: Tensor, vertex_count: Tensor, label_count: Tensor
) -> _Inputs:
    return _Inputs(
        emissions.float().transpose(1, 2).contiguous(),
        links.float().contiguous(),
        vertex_count.to(torch.int32).contiguous(),
        label_count.to(torch.int32).contiguous(),
        (vertex_count.long() ** 2 * label_count).argsort(descending=True),
    )


def _run_walk(given: _Inputs, *, back: bool, best: bool) -> tuple[Tensor, Tensor]:
    """[pair, label, vertex], relative to offsets [pair, label]."""
    num_pairs, num_labels, num_vertices = given.sizes
    states = torch.full_like(given.emissions, -torch.inf)
    offsets = states.new_zeros((num_pairs, num_labels), dtype=torch.float64)
    _walk[(num_pairs,)](
        given.emissions, given.links, states, offsets, given.vertex_count, given.label_count,
        given.order, num_vertices, num_labels, BACK=back, BEST=best, OWN=OWN, OTHER=OTHER,
        num_warps=WARPS,
    )  # fmt: skip
    return states, offsets


def sum_paths(
    emissions: Tensor, links: Tensor, vertex_count: Tensor, label_count: Tensor, *, gradients: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The log-likelihood of each pair, and the posteriors of emissions and links if asked for: see
    `training.parallel.path_sums.sum_paths`."""
    given = _lay_out(emissions, links, vertex_count, label_count)
    num_pairs, num_labels, num_vertices = given.sizes
    prefixes, offsets = _run_walk(given, back=False, best=False)
    pair = torch.arange(num_pairs, device=links.device)
    last = (label_count - 1).clamp_min(0)
    end = prefixes[pair, last, (vertex_count - 1).clamp_min(0)].double() + offsets[pair, last]
    likelihood = torch.where(label_count > 0, end, 0.0)
    if not gradients:
        return likelihood, None, None
    suffixes, rest_offsets = _run_walk(given, back=True, best=False)
    known = torch.where(likelihood > -torch.inf, likelihood, torch.inf)[:, None]
    level = (offsets + rest_offsets - known).float()[..., None]
    # Both vectors contain the emission of their cell.
    share = (prefixes + (suffixes - given.emissions) + level).exp()
    by_emission = share.nan_to_num_(0.0).transpose(1, 2).to(emissions.dtype)
    level = torch.zeros_like(offsets, dtype=torch.float32)
    level[:, :-1] = (offsets[:, :-1] + rest_offsets[:, 1:] - known).float()
    by_link = torch.zeros_like(given.links)
    tiles = triton.cdiv(num_vertices, SIDE)
    _link_sums[(num_pairs, tiles, tiles)](
        given.links, prefixes, suffixes, level, by_link, given.vertex_count, given.label_count,
        num_vertices, num_labels, SIDE=SIDE, num_warps=WARPS,
    )  # fmt: skip
    return likelihood, by_emission, by_link.to(links.dtype)


def trace_best(
    emissions: Tensor, links: Tensor, vertex_count: Tensor, label_count: Tensor
) -> Tensor:
    """The vertices of the best path, [pair, label]; -1 after a pair's last label: see
    `training.parallel.graph_alignment.best_path`."""
    given = _lay_out(emissions, links, vertex_count, label_count)
    num_pairs, num_labels, num_vertices = given.sizes
    states, _ = _run_walk(given, back=False, best=True)
    path = torch.full((num_pairs, num_labels), -1, dtype=torch.int32, device=links.device)
    _trace[(num_pairs,)](
        given.links, states, given.vertex_count, given.label_count, path, num_vertices,
        num_labels, OTHER=OTHER, num_warps=1,
    )  # fmt: skip
    return path.long()
