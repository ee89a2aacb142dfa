"""Computes the loss of a translator that scores neighbouring tokens together: a linear-chain CRF
over the tokens of each target (a chain), on packed rows.

    -log p(y | x) = log Z - Σ_t e_t(y_t) - Σ_t s_t(y_t, y_{t+1})

Emissions e are the decoder's log-probabilities of the most probable tokens and of the reference at
each position; transitions s score neighbouring tokens (models/parallel/transitions.py). The pairs
of a packed row are one chain: where one target ends and the next begins, all transitions are 0, and
a position that is not predicted has a single candidate. Then

    log Z of the row = Σ over its targets of log Z

because a sum of products over independent parts is the product of the sums. So all shapes are
static, and a step can be recorded as a CUDA graph. The recursion over positions
(training/parallel/crf.py) is a loop, which is not compiled.

Sun et al. 2019, *Fast Structured Decoding for Sequence Models*. Tested against: enumeration of all
sequences of a small vocabulary, sentences one by one, and the loss without transitions.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headwise.data.packing import PackedBatch
from headwise.models.parallel.translator import ParallelTranslator
from headwise.text.tokenizer import PAD
from headwise.training.parallel.candidates import best_tokens, force_gold
from headwise.training.parallel.crf import crf_loss
from headwise.training.parallel.token_scores import score_tokens

IMPOSSIBLE = -1e30
"""The score of all candidates but one at a position that is not predicted."""


@torch.compiler.disable
def chain_loss(
    module: ParallelTranslator,
    hidden: Float[Tensor, "row target dim"],
    batch: PackedBatch,
    *,
    predicted: Bool[Tensor, "row target"],
    chunk_size: int | None = None,
) -> Float[Tensor, ""]:
    """The negative log-likelihood of all targets, summed; only `predicted` positions belong to
    them, each target's in a row."""
    assert module.chain is not None
    weight, bias = module.output.weight, module.output.bias
    found = best_tokens(
        hidden, weight, bias=bias, count=module.chain.num_candidates, chunk_size=chunk_size
    )
    candidates, gold = force_gold(found, torch.where(predicted, batch.target_output, PAD))
    emissions = score_tokens(
        hidden.flatten(0, 1),
        weight,
        candidates=candidates.flatten(0, 1),
        bias=bias,
        chunk_size=chunk_size,
    ).view(candidates.shape)
    alone = torch.full_like(emissions, IMPOSSIBLE)
    alone[..., 0] = 0
    emissions = torch.where(predicted[..., None], emissions, alone)
    same_target = batch.target_segment[:, 1:] == batch.target_segment[:, :-1]
    linked = predicted[:, 1:] & predicted[:, :-1] & same_target
    transitions = module.chain.transitions(candidates, hidden)
    losses = crf_loss(
        emissions,
        torch.where(linked[..., None, None], transitions, 0),
        gold=torch.where(predicted, gold, 0),
        lengths=torch.full_like(gold[:, 0], gold.shape[1]),
    )
    return losses.sum()
