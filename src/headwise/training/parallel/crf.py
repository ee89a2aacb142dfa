"""Computes the loss of a linear-chain CRF over the outputs of a parallel decoder.

A target y_1 … y_T is scored as a whole: an emission e_t for the token of each position, and a
transition s_t for each pair of neighbours (`models/parallel/transitions.py`).

    score(y) = Σ_t e_t(y_t) + Σ_t s_t(y_t, y_{t+1})
    -log p(y) = log Z - score(y)                       Z = Σ_{y'} exp score(y')

Z sums over all sequences in T steps of k × k operations (the forward recursion), where each
position may take k candidate tokens:

    α_1(j) = e_1(j)        α_{t+1}(j) = e_{t+1}(j) + log Σ_i exp(α_t(i) + s_t(i, j))

The gradients of log Z are probabilities: of a candidate at a position for an emission, of two
neighbouring candidates for a transition. They follow from α and the same recursion β from the end.
Both recursions are written by hand, so that no table of k × k is kept for each step. They run in
fp32 or better. With the vocabulary as candidates the loss is exact; with the k tokens of the best
emissions and the reference among them Z, and so the loss, is too small.

Sun et al. 2019, *Fast Structured Decoding for Sequence Models*.
Tested against: enumeration of all sequences, the forward recursion over the whole vocabulary,
autograd, gradcheck, and padding that must change nothing.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable


def crf_loss(
    emissions: Float[Tensor, "pair position candidate"],
    transitions: Float[Tensor, "pair position-1 candidate candidate"],
    *,
    gold: Int[Tensor, "pair position"],
    lengths: Int[Tensor, " pair"],
) -> Float[Tensor, " pair"]:
    """-log p of each target; `gold` is the index of its token among a position's candidates.

    What stands at position `length` and after it is padding. A pair of length 0 has loss 0.
    Emissions may be log-probabilities or any scores: a constant added to all candidates of a
    position makes no difference.
    """
    normalizer = log_normalizer(emissions, transitions, lengths=lengths)
    return normalizer - score_paths(emissions, transitions, path=gold, lengths=lengths)


def log_normalizer(
    emissions: Float[Tensor, "pair position candidate"],
    transitions: Float[Tensor, "pair position-1 candidate candidate"],
    *,
    lengths: Int[Tensor, " pair"],
) -> Float[Tensor, " pair"]:
    """log Z: the logarithm of the sum over all sequences of candidates."""
    return _LogNormalizer.apply(_precise(emissions), _precise(transitions), lengths)


def score_paths(
    emissions: Float[Tensor, "pair position candidate"],
    transitions: Float[Tensor, "pair position-1 candidate candidate"],
    *,
    path: Int[Tensor, "pair position"],
    lengths: Int[Tensor, " pair"],
) -> Float[Tensor, " pair"]:
    """The score of one sequence: its emissions and transitions."""
    inside = _inside(lengths, path.shape[1])
    here = _precise(emissions).gather(2, path[..., None])[..., 0]
    both = path[:, :-1] * emissions.shape[2] + path[:, 1:]
    step = _precise(transitions).flatten(2).gather(2, both[..., None])[..., 0]
    return here.masked_fill(~inside, 0).sum(1) + step.masked_fill(~inside[:, 1:], 0).sum(1)


class _LogNormalizer(torch.autograd.Function):
    """α forward; β and the two kinds of probabilities backward."""

    @staticmethod
    def forward(ctx: Any, emissions: Tensor, transitions: Tensor, lengths: Tensor) -> Tensor:
        forward = _forward_scores(emissions, transitions, lengths)
        total = forward[:, -1].logsumexp(-1).masked_fill(lengths < 1, 0)
        ctx.save_for_backward(emissions, transitions, lengths, forward, total)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        emissions, transitions, lengths, forward, total = ctx.saved_tensors
        backward = _backward_scores(emissions, transitions, lengths)
        inside = _inside(lengths, emissions.shape[1])
        total, gradient = total[:, None, None], gradient[:, None, None]
        single = (forward + backward - total).exp_().mul_(gradient)
        after = (emissions + backward - total)[:, 1:, None]
        double = (forward[:, :-1, :, None] + transitions).add_(after).exp_()
        double.mul_(gradient[..., None])
        return (
            single.masked_fill_(~inside[..., None], 0),
            double.masked_fill_(~inside[:, 1:, None, None], 0),
            None,
        )


def _forward_scores(emissions: Tensor, transitions: Tensor, lengths: Tensor) -> Tensor:
    """α of every position; after the end of a target it stays as it was."""
    inside = _inside(lengths, emissions.shape[1])[..., None]
    scores = [emissions[:, 0]]
    for position in range(1, emissions.shape[1]):
        following = _log_sum(scores[-1][:, :, None] + transitions[:, position - 1], dim=1)
        following += emissions[:, position]
        scores.append(torch.where(inside[:, position], following, scores[-1]))
    return torch.stack(scores, dim=1)


def _backward_scores(emissions: Tensor, transitions: Tensor, lengths: Tensor) -> Tensor:
    """β of every position: the sum over all that may follow; 0 at the last position and after."""
    inside = _inside(lengths, emissions.shape[1])[..., None]
    scores = [torch.zeros_like(emissions[:, -1])]
    for position in range(emissions.shape[1] - 2, -1, -1):
        ahead = (emissions[:, position + 1] + scores[-1])[:, None]
        ahead = _log_sum(transitions[:, position] + ahead, dim=2)
        scores.append(torch.where(inside[:, position + 1], ahead, 0))
    return torch.stack(scores[::-1], dim=1)


def _log_sum(scores: Tensor, *, dim: int) -> Tensor:
    """log Σ exp along a dimension, in place of the scores.

    `torch.logsumexp` is the same but launches twice as many kernels over the k × k scores, and
    these are most of the time of a step on a GPU.
    """
    highest = scores.amax(dim, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)
    return scores.sub_(highest).exp_().sum(dim).log_().add_(highest.squeeze(dim))


def _inside(lengths: Tensor, width: int) -> Tensor:
    return torch.arange(width, device=lengths.device) < lengths[:, None]


def _precise(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))
