"""The loss of a parallel translator, on a batch of packed sentence pairs.

    cross_entropy   nothing of the target is known but its length: all tokens are predicted
    masked          some tokens are known, the others are predicted (Mask-Predict)
    glancing        a first pass without gradient; tokens that help are shown, the others predicted

The loss is summed over the predicted tokens. Where the length of the target is predicted, its own
loss is added: `weight` times the mean over sentences for each mean over tokens. Where source tokens
are copied, the loss of their fertilities is added, summed over source tokens, and the decoder reads
the copies that the aligner says. Where neighbouring tokens are scored, the loss is that of whole
targets (chain_loss.py), and `token_weight` times the loss of the tokens. A validation knows the
length alone (or the fertilities), whatever the objective, so that its losses can be compared.

The first pass of glancing runs without dropout. The original draws the same dropout in both passes;
a recorded or compiled update cannot draw the same numbers twice.

Tested against: sentences one by one in plain torch, and training on the pocket corpus.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headwise.data.packing import PackedBatch
from headwise.models.parallel.choices import (
    ClassifierLength,
    CrfStructure,
    FertilityLength,
    ParallelSettings,
)
from headwise.models.parallel.fertility import copy_by_fertility
from headwise.models.parallel.translator import ParallelTranslator
from headwise.tasks.translation.chain_loss import chain_loss
from headwise.tasks.translation.fertile_batches import FertileBatch
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.tokenizer import EOS, PAD
from headwise.training.choices import GlancingObjective, MaskedObjective
from headwise.training.losses import LossSums, cross_entropy
from headwise.training.parallel.fertility_targets import fertility_loss
from headwise.training.parallel.shown_tokens import hide_for_masking, show_for_glancing
from headwise.training.parallel.token_scores import best_tokens


@dataclass(frozen=True)
class ParallelLoss:
    """A parallel translator and its objective."""

    module: ParallelTranslator
    recipe: TranslationRecipe
    chunk_size: int | None = None
    """Tokens whose logits are made at a time; None: as many as suit the device."""

    def loss(self, batch: PackedBatch) -> LossSums:
        memory = self.module.encode(
            batch.source, segment=batch.source_segment, position=batch.source_position
        )
        predicted = self.predicted(batch)
        shown = self.show(batch, memory, predicted)
        hidden = self.decode(batch, memory, shown)
        sums = cross_entropy(
            hidden.flatten(0, 1),
            self.module.output.weight,
            targets=torch.where(predicted & ~shown, batch.target_output, PAD).flatten(),
            bias=self.module.output.bias,
            smoothing=self.recipe.training.objective.label_smoothing,
            chunk_size=self.chunk_size,
        )
        if self.module.chain is not None:
            sums = self.add_chain_loss(sums, batch, hidden, predicted)
        if self.module.fertility is not None:
            return self.add_fertility_loss(sums, batch, memory)
        return self.add_length_loss(sums, batch, memory)

    def predicted(self, batch: PackedBatch) -> Bool[Tensor, "row target"]:
        """The positions whose tokens the model must find: where the length is known, not the end of
        the sentence; with many BEGIN tokens, the first end and nothing after it."""
        real, ends = batch.target_segment > 0, batch.target_output == EOS
        if self.module.num_begins is None:
            return real & ~ends
        after_end = torch.zeros_like(ends)
        after_end[:, 1:] = ends[:, :-1] & (batch.target_position[:, 1:] > 0)
        return real & ~after_end

    def show(
        self,
        batch: PackedBatch,
        memory: Float[Tensor, "row source dim"],
        predicted: Bool[Tensor, "row target"],
    ) -> Bool[Tensor, "row target"]:
        """Which of the tokens to be predicted the decoder is shown."""
        nothing = torch.zeros_like(predicted)
        if not self.module.training:
            return nothing
        objective = self.recipe.training.objective
        if isinstance(objective, MaskedObjective):
            return predicted & ~hide_for_masking(predicted, batch.target_segment)
        if isinstance(objective, GlancingObjective):
            wrong = self.first_pass(batch, memory) != batch.target_output
            progress = (self.module.training_step.number / self.recipe.training.steps).clamp(max=1)
            return show_for_glancing(
                wrong,
                predicted,
                batch.target_segment,
                ratio=objective.start + (objective.end - objective.start) * progress,
            )
        return nothing

    @torch.compiler.disable
    def first_pass(
        self, batch: PackedBatch, memory: Float[Tensor, "row source dim"]
    ) -> Int[Tensor, "row target"]:
        """The most probable tokens if none is shown."""
        with torch.no_grad():
            self.module.eval()
            nothing = torch.zeros_like(batch.target_segment, dtype=torch.bool)
            hidden = self.decode(batch, memory.detach(), nothing)
            self.module.train()
            found, _ = best_tokens(
                hidden.flatten(0, 1), self.module.output.weight, bias=self.module.output.bias
            )
        return found.view_as(batch.target_output)

    def decode(
        self,
        batch: PackedBatch,
        memory: Float[Tensor, "row source dim"],
        shown: Bool[Tensor, "row target"],
    ) -> Float[Tensor, "row target dim"]:
        """Hidden states at all positions; the decoder reads the tokens that are shown."""
        known = torch.where(shown, batch.target_output, PAD)
        if self.module.num_begins is None:
            known = torch.where(batch.target_output == EOS, EOS, known)
        tokens = self.module.read_target(
            known,
            batch.source,
            source_segment=batch.source_segment,
            target_segment=batch.target_segment,
            target_position=batch.target_position,
            copied=self.copied(batch),
        )
        return self.module.decode(
            tokens,
            memory,
            source_segment=batch.source_segment,
            target_segment=batch.target_segment,
            target_position=batch.target_position,
        )

    def copied(self, batch: PackedBatch) -> Int[Tensor, "row target"] | None:
        """The source tokens that the decoder reads, if they are copied by fertility."""
        if self.module.fertility is None:
            return None
        assert isinstance(batch, FertileBatch)
        width = batch.target_segment.shape[1]
        copies = copy_by_fertility(batch.fertility, batch.source_segment, width=width)
        return copies.copy_tokens(batch.source)

    def add_chain_loss(
        self,
        sums: LossSums,
        batch: PackedBatch,
        hidden: Float[Tensor, "row target dim"],
        predicted: Bool[Tensor, "row target"],
    ) -> LossSums:
        """The loss of whole targets, with a share of that of the tokens."""
        model = self.recipe.model
        assert isinstance(model, ParallelSettings)
        assert isinstance(model.structure, CrfStructure)
        loss = chain_loss(
            self.module, hidden, batch, predicted=predicted, chunk_size=self.chunk_size
        )
        return LossSums(
            loss + model.structure.token_weight * sums.loss, loss.detach(), sums.num_tokens
        )

    def add_fertility_loss(
        self, sums: LossSums, batch: PackedBatch, memory: Float[Tensor, "row source dim"]
    ) -> LossSums:
        """With the loss of the predicted fertilities."""
        model = self.recipe.model
        assert isinstance(model, ParallelSettings)
        assert isinstance(model.length, FertilityLength)
        assert isinstance(batch, FertileBatch)
        assert self.module.fertility is not None
        logits = self.module.fertility(memory)
        loss = fertility_loss(logits, batch.fertility, batch.source_segment)
        return sums.with_loss(sums.loss + model.length.weight * loss)

    def add_length_loss(
        self, sums: LossSums, batch: PackedBatch, memory: Float[Tensor, "row source dim"]
    ) -> LossSums:
        """With the loss of the predicted length, if there is one."""
        model = self.recipe.model
        if self.module.length is None:
            return sums
        assert isinstance(model, ParallelSettings)
        assert isinstance(model.length, ClassifierLength)
        loss, num_sentences = self.module.length.loss(
            memory,
            source_segment=batch.source_segment,
            source_position=batch.source_position,
            target_segment=batch.target_segment,
        )
        scale = model.length.weight * sums.num_tokens / num_sentences.clamp(min=1)
        return sums.with_loss(sums.loss + scale * loss)
