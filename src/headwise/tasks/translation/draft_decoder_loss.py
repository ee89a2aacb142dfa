"""The loss of a draft decoder: the next tokens after a random place of each sentence.

    n               drawn from 0 … T - 1 for each sentence; in validations the middle
    known           <s> y_1 … y_n
    guessed         y_{n+1} … y_{n+block}, at positions n … n + block - 1
    not seen        the rest of the sentence

The rows of a batch are read at several places (`PLACES`), so that an update learns more tokens; the
encoder has read them once. The mean loss of the guessed tokens is added to that of the model, times
`model.draft_decoder.weight`. If all weights but those of the draft decoder are frozen, the model
writes what it wrote before.

Tested against: what is known, guessed and seen, by hand on a packed row; sentences one by one; a
draft decoder that learns a sequence.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headwise.data.packing import PackedBatch
from headwise.models.draft_decoder import DraftDecoder
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.text.tokenizer import PAD
from headwise.training.losses import LossSums, cross_entropy

PLACES = 4
"""Places of each sentence from which the next tokens are guessed in an update."""


class Guessed(NamedTuple):
    """What a draft decoder reads and learns, at the positions of packed targets."""

    is_known: Bool[Tensor, "row target"]
    targets: Int[Tensor, "row target"]
    """The tokens to be guessed; padding elsewhere."""
    segment: Int[Tensor, "row target"]
    """That of the position, or 0 where it is not seen."""


def choose_guessed(
    batch: PackedBatch, share: Float[Tensor, "row sentence"], *, block: int
) -> Guessed:
    """The tokens after the first `share` of each sentence; `share` is in [0, 1), by segment."""
    segment, position = batch.target_segment, batch.target_position
    counts = segment.new_zeros(segment.shape[0], segment.shape[1] + 1)
    length = counts.scatter_add(1, segment, torch.ones_like(segment)).gather(1, segment)
    last_known = (share.gather(1, segment) * length).long()
    is_seen = (segment > 0) & (position < last_known + block)
    is_guessed = is_seen & (position >= last_known)
    return Guessed(
        position <= last_known,
        torch.where(is_guessed, batch.target_output, PAD),
        torch.where(is_seen, segment, 0),
    )


def add_draft_decoder_loss(
    sums: LossSums,
    module: EncoderDecoder,
    drafter: DraftDecoder,
    memory: Float[Tensor, "row source dim"],
    batch: PackedBatch,
    *,
    smoothing: float,
    chunk_size: int | None,
) -> LossSums:
    """The loss with the draft decoder's share; what is reported besides is the model's own."""
    shape = batch.target_segment.shape[0], batch.target_segment.shape[1] + 1
    places = PLACES if module.training else 1
    guessed = []
    for _ in range(places):
        share = memory.new_full(shape, 0.5)
        if module.training:
            share = torch.rand(shape, device=memory.device)
        guessed.append(choose_guessed(batch, share, block=drafter.block))
    is_known, targets, segment = (torch.cat(parts) for parts in zip(*guessed, strict=True))
    hidden = drafter(
        batch.target_input.repeat(places, 1),
        is_known,
        memory.repeat(places, 1, 1),
        embedding=module.target_embedding,
        target_segment=segment,
        source_segment=batch.source_segment.repeat(places, 1),
        target_position=batch.target_position.repeat(places, 1),
    )
    found = cross_entropy(
        hidden.flatten(0, 1),
        module.output.weight,
        targets=targets.flatten(),
        bias=module.output.bias,
        smoothing=smoothing,
        chunk_size=chunk_size,
    )
    scale = drafter.weight * sums.num_tokens / found.num_tokens.clamp(min=1)
    return sums.with_loss(sums.loss + scale * found.loss)
