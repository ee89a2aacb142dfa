"""The loss of a graph of vertices: minus the log-probability of a sentence over all of its paths.

A path starts at vertex 0, visits later and later vertices and ends at the last one; the j-th vertex
that it visits emits label j. The sentence does not say which vertices were visited, so the loss
sums over all paths, which a recursion over the labels does in O(labels · vertices²):

    α_0(k) = e(0, k) at vertex 0              e(j, k) = log p(label j | vertex k)
    α_j(k) = e(j, k) + log Σ_i exp(α_{j-1}(i) + link(i, k))
    loss   = -α_{M-1}(last vertex)

The gradient is minus the posterior probability of each cell and each link, from the same recursion
run from the end. There are three forms of it. `plain_graph_loss` is the definition, in log space
through autograd. On a CPU `path_sums.py` works in probability space, with one matrix product a
label; pairs for which that cannot be proven exact go through the definition. On a GPU a Triton
kernel (gpu/graph_recursion.py) does all labels of a pair in one launch, in log space.

A sentence with more labels than vertices has no path: `fits` is false, loss and gradient are zero,
and the caller counts it. If every path of a pair has probability zero, its loss is infinite and its
gradient zero.

Huang et al. 2022 (arXiv 2205.07459), section 3.1. Tested against: enumeration of all paths, its
gradient by autograd; the sum over all outputs of all lengths is one; padding changes nothing.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from headwise.gpu import runs_kernels
from headwise.training.parallel.path_sums import possible_cells, sum_paths

_NEVER = -1e30
"""Stands for minus infinity, whose differences would be NaN in a gradient."""
_IMPOSSIBLE = -1e29


def fits(
    vertex_count: Int[Tensor, " pair"], label_count: Int[Tensor, " pair"]
) -> Bool[Tensor, " pair"]:
    """Whether a path exists: no more labels than vertices, and a second label where the first
    vertex is not the last."""
    enough = (label_count >= 1) & (label_count <= vertex_count)
    return enough & ((label_count > 1) | (vertex_count == 1))


def graph_loss(
    emissions: Float[Tensor, "pair vertex label"],
    links: Float[Tensor, "pair vertex successor"],
    vertex_count: Int[Tensor, " pair"],
    label_count: Int[Tensor, " pair"],
) -> Float[Tensor, " pair"]:
    """The negative log-likelihood of each pair; zero where `fits` is false.

    `emissions` are log-probabilities of the labels at each vertex, `links` of the successors, -inf
    where there is none. Computed in fp32 or wider, whatever the inputs are.
    """
    return _GraphLoss.apply(emissions, links, vertex_count, label_count)


class _GraphLoss(torch.autograd.Function):
    """Gradients are computed in the forward pass, which has everything they need."""

    @staticmethod
    def forward(
        ctx: Any,
        emissions: Tensor,
        links: Tensor,
        vertex_count: Tensor,
        label_count: Tensor,
    ) -> Tensor:
        needed = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
        real = fits(vertex_count, label_count)
        counted = torch.where(real, label_count, 0)
        if runs_kernels(emissions):
            from headwise.gpu.graph_recursion import sum_paths as sum_on_gpu

            found = _Derived(*sum_on_gpu(emissions, links, vertex_count, counted, gradients=needed))
        else:
            found = _sum_safely(emissions, links, vertex_count, counted, gradients=needed)
        if needed:
            ctx.save_for_backward(found.by_emission, found.by_link)
        dtype = torch.promote_types(emissions.dtype, torch.float32)
        return torch.where(real, -found.log_likelihood, 0.0).to(dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        by_emission, by_link = ctx.saved_tensors
        outer = -gradient[:, None, None]
        return (
            (outer * by_emission).to(by_emission.dtype),
            (outer * by_link).to(by_link.dtype),
            None,
            None,
        )


class _Derived(NamedTuple):
    """Log-likelihoods and, if asked for, their derivatives in the dtype of the inputs."""

    log_likelihood: Tensor
    by_emission: Tensor | None
    by_link: Tensor | None


def _sum_safely(
    emissions: Tensor, links: Tensor, vertex_count: Tensor, counted: Tensor, *, gradients: bool
) -> _Derived:
    """In probability space, and in log space the pairs that were not certain there."""
    sums = sum_paths(emissions, links, vertex_count, counted, gradients=gradients)
    total = sums.log_likelihood
    by_emission, by_link = sums.by_emission, sums.by_link
    if by_emission is not None and by_link is not None:
        by_emission, by_link = by_emission.to(emissions.dtype), by_link.to(links.dtype)
    left = (~sums.certain).nonzero()[:, 0]
    if len(left):
        again = _sum_in_log_space(
            emissions[left], links[left], vertex_count[left], counted[left], gradients=gradients
        )
        total[left] = again.log_likelihood.to(total.dtype)
        if by_emission is not None and by_link is not None:
            assert again.by_emission is not None
            assert again.by_link is not None
            by_emission[left], by_link[left] = again.by_emission, again.by_link
    return _Derived(total, by_emission, by_link)


def _sum_in_log_space(
    emissions: Tensor, links: Tensor, vertex_count: Tensor, counted: Tensor, *, gradients: bool
) -> _Derived:
    with torch.enable_grad():
        inputs = emissions.detach().requires_grad_(), links.detach().requires_grad_()
        total = -plain_graph_loss(*inputs, vertex_count, counted)
        if not gradients:
            return _Derived(total.detach(), None, None)
        by_emission, by_link = torch.autograd.grad(
            torch.where(total > -torch.inf, total, 0.0).sum(), inputs
        )
    return _Derived(total.detach(), by_emission, by_link)


def plain_graph_loss(
    emissions: Float[Tensor, "pair vertex label"],
    links: Float[Tensor, "pair vertex successor"],
    vertex_count: Int[Tensor, " pair"],
    label_count: Int[Tensor, " pair"],
) -> Float[Tensor, " pair"]:
    """`graph_loss` as its formula reads: in log space, a table of vertex pairs for each label, the
    gradient by autograd."""
    dtype = torch.promote_types(emissions.dtype, torch.float32)
    num_vertices, num_labels = emissions.shape[1:]
    counted = torch.where(fits(vertex_count, label_count), label_count, 0)
    possible = possible_cells(
        vertex_count, counted, num_vertices=num_vertices, num_labels=num_labels
    )
    scores = emissions.to(dtype).permute(2, 0, 1).clamp_min(_NEVER)
    scores = torch.where(possible, scores, _NEVER)
    steps = links.to(dtype).clamp_min(_NEVER)
    alpha = scores[0]
    # The last label of a pair stands at one vertex: the sum over vertices reads it.
    ends = [alpha.logsumexp(-1)]
    for label in range(1, num_labels):
        arrived = (alpha[:, :, None] + steps).logsumexp(1)
        alpha = torch.where(possible[label], scores[label] + arrived.clamp_min(_NEVER), _NEVER)
        ends.append(alpha.logsumexp(-1))
    total = torch.stack(ends, 1).gather(1, (counted - 1).clamp_min(0)[:, None])[:, 0]
    loss = torch.where(total > _IMPOSSIBLE, -total, torch.inf)
    return torch.where(counted > 0, loss, 0.0)
