"""N-gram matching under CTC: how many n-grams of the reference the positions are expected to write.

The likelihood (ctc.py) counts only alignments of the whole reference, in its order. This objective
counts the words or pairs of words of the reference that an alignment writes anywhere, and compares
them with those that it writes in all. With p_t(w) the probability of w at position t and ∅ the
blank,

    E[count w]    = Σ_t p_t(w) (1 - p_{t-1}(w))              an equal neighbour is merged
    E[count v w]  = Σ_{i<j} p_i(v) Π_{i<k<j} p_k(∅) p_j(w)   i ends the run of v, j begins that of w
    E[length]     = Σ_t (1 - p_t(∅)) - Σ_t Σ_w p_t(w) p_{t-1}(w)
    E[pairs]      = E[length] - 1 + Π_t p_t(∅)               an empty sentence has no pair less
    F1            = 2 Σ_g min(E[count g], reference count g) / (E[n-grams] + n-grams of reference)
    loss          = -F1

If v = w, a blank must stand between, so j = i + 1 does not count. All expectations are exact: the
positions are independent, and what merges is known from neighbours. Models are trained with the
likelihood first and then fine-tuned with this one.

Shao & Feng 2022, Non-Monotonic Latent Alignments for CTC-Based Non-Autoregressive Machine
Translation (arXiv 2210.03953), who count without merging; Shao et al. 2020. Tested against: counts
over all alignments one by one, with gradients.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headwise.training.parallel.fuzzy_alignment import reference_counts

ORDERS = (1, 2)
LEAST = -80.0
"""Of the log-probability of a blank: a product with smaller ones is zero anyway."""


class NgramMatch(NamedTuple):
    """The loss of each pair and what it consists of, [pair]."""

    loss: Float[Tensor, " pair"]
    """Minus F1; zero, without gradient, where `counted` is false."""
    expected_length: Float[Tensor, " pair"]
    counted: Bool[Tensor, " pair"]
    """Whether reference and positions are long enough to have an n-gram."""


def match_ngrams(
    scores: Float[Tensor, "pair position 1+label"],
    overlap: Float[Tensor, "pair position-1"],
    labels: Int[Tensor, "pair label"],
    *,
    position_count: Int[Tensor, " pair"],
    label_count: Int[Tensor, " pair"],
    order: int = 2,
) -> NgramMatch:
    """`scores` and counts as for `ctc_loss`; `overlap` is the probability that a position writes
    the same token as the one before it (`token_scores.repeats`), blanks excluded."""
    assert order in ORDERS
    index = torch.arange(scores.shape[1], device=scores.device)
    real = index < position_count[:, None]
    with torch.autocast(scores.device.type, enabled=False):  # sums of many small probabilities
        blank = scores[..., 0].clamp_min(LEAST).masked_fill(~real, 0.0)
        written = scores[..., 1:].exp().masked_fill(~real[..., None], 0.0).transpose(1, 2)
        merged = overlap.masked_fill(~real[:, 1:], 0.0)
        length = (1 - blank.exp()).sum(-1) - merged.sum(-1)
        total = length if order == 1 else length - 1 + blank.sum(-1).exp()
        matched = _words(written) if order == 1 else _pairs(written, blank, labels)
    in_reference = reference_counts(labels, label_count, order=order)
    hits = torch.minimum(matched, in_reference.to(matched)).sum(-1)
    counted = (label_count >= order) & (position_count >= order)
    both = torch.where(counted, total + label_count - order + 1, 1.0)
    loss = torch.where(counted, -2 * hits / both, 0.0)
    return NgramMatch(loss, length, counted)


def _words(written: Float[Tensor, "pair label position"]) -> Float[Tensor, "pair label"]:
    """How often each label of the reference is written."""
    return written.sum(-1) - (written[..., 1:] * written[..., :-1]).sum(-1)


def _pairs(
    written: Float[Tensor, "pair label position"],
    blank: Float[Tensor, "pair position"],
    labels: Int[Tensor, "pair label"],
) -> Float[Tensor, "pair label-1"]:
    """How often each label is written with the next one right after it."""
    before = blank.cumsum(-1)
    # From position i to j > i, through blanks: the sum of blank over i < k < j.
    between = (before - blank)[:, None, :] - before[:, :, None]
    later = torch.ones_like(between, dtype=torch.bool).triu(1)
    passed = between.masked_fill(~later, -torch.inf).exp()
    first, second = written[:, :-1], written[:, 1:]
    found = ((first @ passed) * second).sum(-1)
    side_by_side = (first[..., :-1] * second[..., 1:]).sum(-1)
    return torch.where(labels[:, :-1] == labels[:, 1:], found - side_by_side, found)
