"""The loss of draft heads: head j learns the j-th token after the next one of the same sentence.

    position t of a row      the model learns y_{t+1}, head j learns y_{t+1+j}
    target of head j at t    target_output[t + j] if it is of the same sentence, else nothing

A head reads the decoder's state and the embedding of y_{t+1}, which in training is the reference's
(models/draft_heads.py). The mean loss of the heads is added to that of the model, times
`model.draft_heads.weight`. If all weights but those of the heads are frozen, the model writes what
it wrote before.

Tested against: targets worked out by hand on a packed row; heads that learn a sequence.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.data.packing import PackedBatch
from headwise.models.draft_heads import DraftHeads
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.text.tokenizer import PAD
from headwise.training.losses import LossSums, cross_entropy


def later_targets(
    target: Int[Tensor, "row target"], segment: Int[Tensor, "row target"], count: int
) -> Int[Tensor, "head row target"]:
    """What head 1 … `count` predict at every position; padding where the sentence has ended."""
    found = []
    for ahead in range(1, count + 1):
        later, own = target[:, ahead:], segment[:, ahead:] == segment[:, :-ahead]
        padded = torch.full_like(target, PAD)
        padded[:, : later.shape[1]] = torch.where(own, later, PAD)
        found.append(padded)
    return torch.stack(found)


def add_heads_loss(
    sums: LossSums,
    module: EncoderDecoder,
    heads: DraftHeads,
    hidden: Float[Tensor, "row target dim"],
    batch: PackedBatch,
    *,
    smoothing: float,
    chunk_size: int | None,
) -> LossSums:
    """The loss with the heads' share; what is reported besides is the model's own."""
    embedding = module.target_embedding
    written = embedding.table(batch.target_output) * embedding.scale
    ahead = heads(hidden.flatten(0, 1), written.flatten(0, 1))
    targets = later_targets(batch.target_output, batch.target_segment, heads.count)
    found = cross_entropy(
        ahead.flatten(0, 1),
        module.output.weight,
        targets=targets.flatten(),
        bias=module.output.bias,
        smoothing=smoothing,
        chunk_size=chunk_size,
    )
    return sums.with_loss(sums.loss + heads.weight / heads.count * found.loss)
