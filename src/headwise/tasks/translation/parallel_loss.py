"""The loss of a parallel translator, on a batch of packed sentence pairs.

    cross_entropy   nothing of the target is known but its length: all tokens are predicted
    masked          some tokens are known, the others are predicted (Mask-Predict)
    glancing        a first pass without gradient; tokens that help are shown, the others predicted

The loss is summed over the predicted tokens. Where the length of the target is predicted, its own
loss is added: `weight` times the mean over sentences for each mean over tokens. A validation knows
the length alone, whatever the objective, so that its losses can be compared.

The first pass of glancing runs without dropout. The original draws the same dropout in both passes;
a recorded or compiled update cannot draw the same numbers twice.

Tested against: sentences one by one in plain torch, and training on the pocket corpus.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headwise.data.packing import PackedBatch
from headwise.models.parallel.choices import ClassifierLength, ParallelSettings
from headwise.models.parallel.translator import ParallelTranslator
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.tokenizer import EOS, PAD
from headwise.training.choices import GlancingObjective, MaskedObjective
from headwise.training.losses import LossSums, cross_entropy
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
        )
        return self.module.decode(
            tokens,
            memory,
            source_segment=batch.source_segment,
            target_segment=batch.target_segment,
            target_position=batch.target_position,
        )

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
        return sums._replace(loss=sums.loss + scale * loss)
