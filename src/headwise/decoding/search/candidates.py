"""Finds the continuations that a beam search considers at one step: the best tokens of its rows.

A row with total log-probability s offers the total s + log p(w | row) for every token w. The 2k
best of a sentence are enough for a beam of k, since at most k of them (one per row) end the
sentence.
Tested through beam search.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headwise.gpu import runs_kernels


@dataclass(frozen=True)
class Candidates:
    """Continuations considered at one step, [sentence, candidate]."""

    total: Float[Tensor, "sentence candidate"]
    """Log-probability of the whole hypothesis, this token included."""
    log_probability: Float[Tensor, "sentence candidate"]
    parent: Int[Tensor, "sentence candidate"]
    token: Int[Tensor, "sentence candidate"]
    ranked: Bool[Tensor, "sentence candidate"]
    """High enough in its ranking to count as finished if it ends here."""
    priority: Float[Tensor, "sentence candidate"]
    """Greater goes first when the beam's slots are given out."""


BLOCK = 64


def take_best(
    scores: Float[Tensor, "row vocab"], count: int
) -> tuple[Float[Tensor, "row best"], Int[Tensor, "row best"]]:
    """The `count` best values of each row and their columns, best first.

    This is `topk`, two to three times as fast on a CPU: the best `count` values lie in the `count`
    blocks of 64 with the greatest maxima, and maxima are cheap to find.
    """
    num_rows, vocab = scores.shape
    num_blocks = vocab // BLOCK
    if num_blocks < 4 * count:
        return scores.topk(count, dim=-1)
    blocks = (
        scores[:, : num_blocks * BLOCK]
        .view(num_rows, num_blocks, BLOCK)
        .amax(-1)
        .topk(count, dim=-1)
        .indices
    )
    inside = torch.arange(BLOCK, device=scores.device)
    places = (blocks[:, :, None] * BLOCK + inside).view(num_rows, -1)
    rest = torch.arange(num_blocks * BLOCK, vocab, device=scores.device).expand(num_rows, -1)
    places = torch.cat([places, rest], dim=1)
    values, order = scores.gather(1, places).topk(count, dim=-1)
    return values, places.gather(1, order)


def rank_tokens(
    logits: Float[Tensor, "row vocab"], banned: Bool[Tensor, "vocab"], *, count: int
) -> tuple[Float[Tensor, "row best"], Int[Tensor, "row best"]]:
    """Log-probabilities and tokens of each row's `count` best, best first.

    Banned tokens are not taken, but the probabilities are those of the whole vocabulary.
    """
    if runs_kernels(logits):
        from headwise.gpu.token_ranking import MAX_COUNT, MAX_VOCAB, rank

        if logits.shape[1] <= MAX_VOCAB and count <= MAX_COUNT:
            return rank(logits, banned, count=count)
    exact = logits if logits.dtype == torch.float64 else logits.float()
    return take_best(exact.log_softmax(-1).masked_fill(banned, -torch.inf), count)


def weigh_rows(
    scores: Float[Tensor, "row vocab"], running: Float[Tensor, "sentence beam"], *, per_row: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Totals, log-probabilities, parents and tokens of the best continuations of each row.

    Shapes are [sentence, row · per_row].
    """
    return add_running(*take_best(scores, per_row), running)


def add_running(
    values: Float[Tensor, "row best"],
    tokens: Int[Tensor, "row best"],
    running: Float[Tensor, "sentence beam"],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Add each row's total to its best tokens, which suffices: it is constant in a row."""
    (num_sentences, size), per_row = running.shape, values.shape[1]
    totals = (running[:, :, None] + values.view(num_sentences, size, per_row)).view(
        num_sentences, -1
    )
    parents = torch.arange(size * per_row, device=values.device) // per_row
    return (
        totals,
        values.view(num_sentences, -1),
        parents.expand(num_sentences, -1),
        tokens.view(num_sentences, -1),
    )


def weigh_best(
    scores: Float[Tensor, "row vocab"], running: Float[Tensor, "sentence beam"]
) -> Candidates:
    """The 2k best continuations of each sentence, best first."""
    return weigh_ranked(*take_best(scores, min(2 * running.shape[1], scores.shape[-1])), running)


def weigh_ranked(
    values: Float[Tensor, "row best"],
    tokens: Int[Tensor, "row best"],
    running: Float[Tensor, "sentence beam"],
) -> Candidates:
    """The same when the best of each row are known."""
    size = running.shape[1]
    totals, values, parents, tokens = add_running(values, tokens, running)
    total, place = totals.topk(2 * size, dim=1)
    ranked = (torch.arange(2 * size, device=total.device) < size).expand_as(total)
    return Candidates(
        total,
        values.gather(1, place),
        parents.gather(1, place),
        tokens.gather(1, place),
        ranked,
        priority=total,
    )
