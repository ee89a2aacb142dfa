"""Beam search with required phrases: slots of the beam are reserved for each degree of progress.

`rules/text_rules.py` gives for every hypothesis its need: the fewest tokens after which the text
may end, with all phrases written. Every step considers the best tokens of every row *and* the best
of those that lower its need. The slots of the beam are divided among the groups of equal need, the
smallest need first (dynamic beam allocation, Post & Vilar 2018, after grid beam search, Hokamp &
Liu 2017). Before that, `rules/constraints.py` has masked the tokens after which the need could not
be met within the length limit, and an end that comes too early. Some token always lowers the need,
so every finished hypothesis holds every phrase.
Tested by that law, with overlapping phrases, with phrases of low probability, and against
exhaustive search.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.decoding.rules.next_token import MINUS_INFINITY
from headwise.decoding.search.candidates import Candidates, add_running, take_best, weigh_rows

NUM_LOWERING = 2
"""Tokens that lower the need, considered besides the best ones of a row."""


def weigh_required(
    scores: Float[Tensor, "row vocab"],
    running: Float[Tensor, "sentence beam"],
    *,
    need: Int[Tensor, "row"],
    need_after: Int[Tensor, "row vocab"],
) -> Candidates:
    """The best tokens of every row and those that lower its need, with a priority for the beam."""
    size = running.shape[1]
    per_row = min(2 * size, scores.shape[-1])
    best = weigh_rows(scores, running, per_row=per_row)
    lowering = scores.masked_fill(need_after >= need[:, None], MINUS_INFINITY)
    values, tokens = take_best(lowering, min(NUM_LOWERING, scores.shape[-1]))
    is_known = (tokens[:, :, None] == best[3].view(-1, 1, per_row)).any(-1)
    more = add_running(values.masked_fill(is_known, MINUS_INFINITY), tokens, running)
    total, value, parent, token = (torch.cat(pair, dim=1) for pair in zip(best, more, strict=True))
    first = torch.arange(len(running), device=running.device)[:, None] * size
    needed = need_after[parent + first, token].long()
    order = total.argsort(dim=1, descending=True, stable=True)
    total, value, parent, token, needed = (
        table.gather(1, order) for table in (total, value, parent, token, needed)
    )
    rank = rank_in_groups(needed)
    # Every group gets one slot before any gets its second, the smallest need first.
    is_possible = total > MINUS_INFINITY
    num_groups = 1 + (needed * is_possible).amax()
    turn = (rank * num_groups + needed).to(total.dtype)
    priority = torch.where(is_possible, -turn, MINUS_INFINITY)
    return Candidates(total, value, parent, token, rank < size, priority)


def rank_in_groups(numbers: Int[Tensor, "sentence candidate"]) -> Int[Tensor, "sentence candidate"]:
    """How many equal numbers stand before each one."""
    ordered, order = numbers.sort(dim=1, stable=True)
    first = torch.searchsorted(ordered, ordered)
    places = torch.arange(numbers.shape[1], device=numbers.device)
    return torch.empty_like(numbers).scatter_(1, order, places - first)
