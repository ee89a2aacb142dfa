"""The loss of a parallel translator that is fine-tuned to write the n-grams of its references.

    ctc      -F1 of the expected n-grams                   training/parallel/ctc_ngrams.py
    graph    -precision of the expected n-grams · brevity  training/parallel/fuzzy_alignment.py

The likelihood asks for one order of the words, that of the reference, and a sentence with one word
too many counts nothing. Here every n-gram of the reference counts, wherever it is written. The loss
is between -1 and 0; each pair counts by its target tokens, as in the other losses. Nothing is shown
of the target. Validations compute the likelihood, so that they can be compared with those before.

Tested against: counts over all alignments and paths of a small model, and training.
"""

from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headwise.data.packing import PackedBatch
from headwise.tasks.translation.alignment_loss import AlignmentLoss, PairsOfBatch, Rows
from headwise.training.choices import NgramObjective
from headwise.training.losses import LossSums
from headwise.training.parallel.ctc_ngrams import match_ngrams
from headwise.training.parallel.fuzzy_alignment import fuzzy_alignment
from headwise.training.parallel.length_groups import length_groups
from headwise.training.parallel.token_scores import repeats


class NgramLoss(AlignmentLoss):
    """The likelihood of AlignmentLoss in validations, n-grams in training."""

    @property
    def order(self) -> int:
        return cast("NgramObjective", self.recipe.training.objective).order

    @torch.compiler.disable
    def sum_alignments(
        self,
        batch: PackedBatch,
        rows: Rows,
        hidden: Float[Tensor, "row position dim"],
        known: Int[Tensor, "row position"],
    ) -> LossSums:
        if not self.module.training:
            return super().sum_alignments(batch, rows, hidden, known)
        with torch.no_grad():
            likelihood = super().sum_alignments(batch, rows, hidden, known)
        pairs = self.unpack(batch, rows)
        states = pairs.rows.lay(hidden)
        match = self.match_paths if self.is_graph else self.match_alignments
        losses, counted = match(pairs, states)
        num_tokens = torch.where(counted, pairs.num_tokens, 0)
        return LossSums(
            (losses * num_tokens).sum(), likelihood.negative_log_likelihood, num_tokens.sum()
        )

    def match_alignments(
        self, pairs: PairsOfBatch, states: Float[Tensor, "pair position dim"]
    ) -> tuple[Float[Tensor, " pair"], Bool[Tensor, " pair"]]:
        """CTC: the losses, and which pairs have an n-gram."""
        output = self.module.output
        overlap = repeats(states, output.weight, bias=output.bias, chunk_size=self.chunk_size)
        found = match_ngrams(
            self.score(states, self.candidates(pairs), pairs.rows.length),
            overlap,
            pairs.labels,
            position_count=pairs.rows.length,
            label_count=pairs.label_count,
            order=self.order,
        )
        return found.loss, found.counted

    def match_paths(
        self, pairs: PairsOfBatch, states: Float[Tensor, "pair vertex dim"]
    ) -> tuple[Float[Tensor, " pair"], Bool[Tensor, " pair"]]:
        """A graph: the same, for groups of pairs of similar size."""
        assert self.module.links is not None
        losses = states.new_zeros(len(states), dtype=torch.float32)
        counted = torch.zeros_like(pairs.label_count, dtype=torch.bool)
        for group in length_groups(pairs.rows.length):
            vertices, labels = pairs.rows.length[group], pairs.label_count[group]
            here = states[group, : int(vertices.max())]
            wanted = pairs.labels[group, : int(labels.max())]
            found = fuzzy_alignment(
                self.score(here, wanted, vertices),
                self.module.links(here, vertices),
                wanted,
                vertices,
                labels,
                order=self.order,
            )
            losses = losses.index_copy(0, group, found.loss.float())
            counted[group] = found.counted
        return losses, counted
