"""Computes the loss of a translator that deletes and inserts words (the Levenshtein Transformer),
on a batch of packed sentence pairs.

The pairs of the packed rows are laid out one per row, because an edit moves the tokens after it:

    rows of targets   a₁ a₂ </s> b₁ </s>         <s> a₁ a₂ </s>
                                          →      <s> b₁ </s>

Some words of each target are deleted at random, and the model learns to insert them, and to delete
what it wrote wrongly (training/parallel/edit_losses.py). `label_smoothing` is that of the words.
The encoder reads packed rows; the rest follows the lengths of the sentences and is not compiled.

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
from headwise.data.token_edits import is_word
from headwise.models.parallel.edit_decoder import EditDecoder
from headwise.models.parallel.translator import ParallelTranslator
from headwise.models.unpacking import unpack_sentences
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
        sources = unpack_sentences(batch.source_segment, batch.source_position)
        segment = sources.lay((batch.source_segment > 0).long()[..., None])[..., 0]
        target = unpack_targets(batch)
        if self.module.training:
            deleted = draw_deletions(target, generator=None)
        else:
            deleted = is_word(target)
        return edit_losses(
            EditDecoder(self.module, sources.lay(memory), segment),
            target,
            deleted,
            word_smoothing=self.recipe.training.objective.label_smoothing,
            chunk_size=self.chunk_size,
        ).total

    def full_rows(self, batch: PackedBatch, memory: Float[Tensor, "row source dim"]) -> LossSums:
        """The same operations for a plan, on rows of one sentence of which half the words lack."""
        decoder, target = EditDecoder(self.module, memory, batch.source_segment), batch.target_input
        known, half = torch.ones_like(target, dtype=torch.bool), max(1, target.shape[1] // 2)
        counts = decoder.insertion_logits(decoder.states(target, known))
        hidden = decoder.states(target, known)[:, :half]
        words = cross_entropy(
            hidden.flatten(0, 1),
            self.module.output.weight,
            targets=target[:, :half].flatten(),
            bias=self.module.output.bias,
            chunk_size=self.chunk_size,
        )
        deletions = decoder.deletion_logits(decoder.states(target, known), known)
        classes = [table.float().log_softmax(-1).sum() for table in (counts, deletions)]
        return words.with_loss(words.loss - sum(classes))


def unpack_targets(batch: PackedBatch) -> Int[Tensor, "pair label"]:
    """The targets one per row, with <s> and </s>."""
    targets = unpack_sentences(batch.target_segment, batch.target_position)
    tokens = targets.lay(batch.target_output[..., None])[..., 0]
    return torch.cat([torch.full_like(tokens[:, :1], BOS), tokens], dim=1)
