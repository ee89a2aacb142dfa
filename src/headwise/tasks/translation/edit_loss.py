"""Computes the loss of a translator that deletes and inserts words (the Levenshtein Transformer),
on a batch of packed sentence pairs.

The rows stay packed, but each target gets its <s>, so that there is a gap before its first word:

    target_output   a₁ a₂ </s> b₁ </s>      →      <s> a₁ a₂ </s> <s> b₁ </s> ·

Rows become longer by one half, which is enough for the <s> of all targets, as each has a word and
an end. Laid out one per row, targets would all be as wide as the longest: with a mean of 14 tokens
and a longest of 60, the decoder would compute three times as many positions. And nothing has to be
read from the batch, so a GPU never waits for the host.

Some words of each target are deleted at random, and the model learns to insert them, and to delete
what it wrote wrongly (training/parallel/edit_losses.py). `label_smoothing` is that of the words.
The encoder may be compiled; the rest is full of loops over positions and is not.

A validation starts from nothing, as a search does, and is not smoothed in the numbers of words. It
draws no random numbers; its perplexity is that of the words if only their number is known, as for
other parallel models.

Tested against: sentences one by one, training on the pocket corpus, and plans.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.data.packing import PackedBatch
from headwise.data.token_edits import is_word, move, width_with_begins
from headwise.models.parallel.edit_decoder import EditDecoder
from headwise.models.parallel.translator import ParallelTranslator
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.tokenizer import BOS
from headwise.training.losses import LossSums, cross_entropy
from headwise.training.parallel.edit_losses import draw_deletions, edit_losses


@dataclass(frozen=True)
class EditLoss:
    """A parallel translator with edit heads, and its objective."""

    module: ParallelTranslator
    recipe: TranslationRecipe
    chunk_size: int | None = None
    """Words whose logits are made at a time; None: as many as suit the device."""

    def loss(self, batch: PackedBatch) -> LossSums:
        memory = self.module.encode(
            batch.source, segment=batch.source_segment, position=batch.source_position
        )
        if self.module.assumes_full_rows:
            return self.full_rows(batch, memory)
        return self.sum_edits(batch, memory)

    @torch.compiler.disable
    def sum_edits(self, batch: PackedBatch, memory: Float[Tensor, "row source dim"]) -> LossSums:
        """The losses of all pairs, summed."""
        target = lay_targets(batch)
        if self.module.training:
            deleted = draw_deletions(target, generator=None)
        else:
            deleted = is_word(target)
        return edit_losses(
            EditDecoder(self.module, memory, batch.source_segment),
            target,
            deleted,
            word_smoothing=self.recipe.training.objective.label_smoothing,
            chunk_size=self.chunk_size,
        ).total

    def full_rows(self, batch: PackedBatch, memory: Float[Tensor, "row source dim"]) -> LossSums:
        """The same operations for a plan, on rows of one sentence."""
        decoder = EditDecoder(self.module, memory, batch.source_segment)
        rows, width = batch.target_input.shape
        target = batch.target_input.new_ones(rows, width_with_begins(width))
        known = torch.ones_like(target, dtype=torch.bool)
        counts = decoder.insertion_logits(decoder.states(target, known))
        hidden = decoder.states(target, known)
        words = cross_entropy(
            hidden.flatten(0, 1),
            self.module.output.weight,
            targets=target.flatten(),
            bias=self.module.output.bias,
            chunk_size=self.chunk_size,
        )
        deletions = decoder.deletion_logits(decoder.states(target, known), known)
        classes = [table.float().log_softmax(-1).sum() for table in (counts, deletions)]
        return words.with_loss(words.loss - sum(classes))


def lay_targets(batch: PackedBatch) -> Int[Tensor, "row position"]:
    """The targets of each packed row, each from <s> to </s>, then padding."""
    length = batch.target_output.shape[1]
    width = width_with_begins(length)
    real = batch.target_segment > 0
    # Each token is moved on by the <s> of its own target and of those before it.
    place = torch.arange(length, device=real.device) + batch.target_segment
    place = torch.where(real, place, width).clamp(max=width)
    first = torch.where(real & (batch.target_position == 0), place - 1, width)
    begins = move(torch.full_like(place, BOS), first, width=width)
    return begins + move(batch.target_output, place, width=width)
