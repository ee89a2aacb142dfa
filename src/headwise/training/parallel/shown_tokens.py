"""Chooses which tokens of a target a parallel decoder is shown while it learns the others.

    masked      N tokens: hide 1 + ⌊u N⌋ of them, u uniform in [0, 1): any number from 1 to N
    glancing    show ⌊ratio · d⌋ of them, d the tokens that a first pass predicts wrongly

Which tokens are hidden or shown is drawn uniformly among all tokens of the sentence. Both functions
keep static shapes: each token draws a random number, and the tokens of a sentence with the smallest
numbers are chosen.

Ghazvininejad et al. 2019, *Mask-Predict*; Qian et al. 2021, *Glancing Transformer*. Tested: counts
equal the formula for every sentence of packed rows, each token is chosen equally often, and padding
is never chosen.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def count_by_segment(
    chosen: Bool[Tensor, "row time"], segment: Int[Tensor, "row time"]
) -> Int[Tensor, "row time"]:
    """At each token how many tokens of its sentence are chosen."""
    counts = segment.new_zeros(segment.shape[0], segment.shape[1] + 1)
    return counts.scatter_add(1, segment, chosen.long()).gather(1, segment)


def choose_tokens(
    count: Int[Tensor, "row time"],
    eligible: Bool[Tensor, "row time"],
    segment: Int[Tensor, "row time"],
) -> Bool[Tensor, "row time"]:
    """`count` (the same at all tokens of a sentence) of its eligible tokens, drawn at random."""
    # Tokens in the order of (sentence, eligible first, random number); the sort keeps sentences
    # together, so a token's rank is its place minus that of its sentence.
    drawn = torch.rand(segment.shape, device=segment.device)
    key = 2.0 * segment + torch.where(eligible, 0.9 * drawn, 1.0)
    order = key.argsort(1)
    place = torch.empty_like(order).scatter_(
        1, order, torch.arange(order.shape[1], device=order.device).expand_as(order)
    )
    lengths = segment.new_zeros(segment.shape[0], segment.shape[1] + 1).scatter_add(
        1, segment, torch.ones_like(segment)
    )
    first = (lengths.cumsum(1) - lengths).gather(1, segment)
    return eligible & (place - first < count)


def hide_for_masking(
    eligible: Bool[Tensor, "row time"], segment: Int[Tensor, "row time"]
) -> Bool[Tensor, "row time"]:
    """The tokens that are hidden: in each sentence between one and all of the eligible ones."""
    total = count_by_segment(eligible, segment)
    share = torch.rand(segment.shape[0], segment.shape[1] + 1, device=segment.device)
    hidden = 1 + (share.gather(1, segment) * total).long()
    return choose_tokens(torch.minimum(hidden, total), eligible, segment)


def show_for_glancing(
    wrong: Bool[Tensor, "row time"],
    eligible: Bool[Tensor, "row time"],
    segment: Int[Tensor, "row time"],
    *,
    ratio: Float[Tensor, ""],
) -> Bool[Tensor, "row time"]:
    """The tokens that are shown after a first pass; `wrong` marks those that it did not predict."""
    distance = count_by_segment(wrong & eligible, segment)
    return choose_tokens((ratio * distance).long(), eligible, segment)
