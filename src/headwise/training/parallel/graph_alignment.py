"""Finds the best path of a sentence through its graph: at which vertex each label most likely
stands.

    v_0(k) = e(0, k) at vertex 0
    v_j(k) = e(j, k) + max_i (v_{j-1}(i) + link(i, k)),      then back from the last vertex

It is the recursion of the loss (graph_loss.py) with a maximum in place of the sum (Viterbi).
Glancing needs it: the labels that are shown to the decoder are shown at these vertices (Huang et
al. 2022, section 3.3; Qian et al. 2021). No table of pointers is kept: on the way back the
predecessor is looked up again, for one vertex a pair instead of all of them. Equal paths: the
earliest predecessor wins.

Tested against: enumeration of all paths; gpu/graph_recursion.py against this.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.gpu import runs_kernels
from headwise.training.parallel.graph_loss import fits
from headwise.training.parallel.path_sums import possible_cells


@torch.no_grad()
def best_path(
    emissions: Float[Tensor, "pair vertex label"],
    links: Float[Tensor, "pair vertex successor"],
    vertex_count: Int[Tensor, " pair"],
    label_count: Int[Tensor, " pair"],
) -> Int[Tensor, "pair label"]:
    """The vertex of each label; -1 after the last, and everywhere in a pair that does not fit."""
    counted = torch.where(fits(vertex_count, label_count), label_count, 0)
    if runs_kernels(emissions):
        from headwise.gpu.graph_recursion import trace_best

        return trace_best(emissions, links, vertex_count, counted)
    num_pairs, num_vertices, num_labels = emissions.shape
    possible = possible_cells(
        vertex_count, counted, num_vertices=num_vertices, num_labels=num_labels
    )
    scores = emissions.permute(2, 0, 1).masked_fill(~possible, -torch.inf)
    best = [scores[0]]
    for label in range(1, num_labels):
        best.append(scores[label] + (best[-1][:, :, None] + links).amax(1))
    vertex = (vertex_count - 1).clamp_min(0)
    path = torch.full((num_pairs, num_labels), -1, device=links.device)
    pair = torch.arange(num_pairs, device=links.device)
    for label in reversed(range(num_labels)):
        # A pair whose last label is further to the left waits at its last vertex.
        if label + 1 < num_labels:
            before = (best[label] + links[pair, :, vertex]).argmax(-1)
            vertex = torch.where(label + 1 < counted, before, vertex)
        path[:, label] = torch.where(label < counted, vertex, -1)
    return path
