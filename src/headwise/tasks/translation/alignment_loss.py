"""Computes the loss of a parallel translator whose decoder has more positions than the target has
tokens: CTC, or paths through a graph of positions.

    ctc      -log Σ p(alignment)    over the alignments that collapse to the target
    graph    -log Σ p(path)         over the paths that emit <s> target </s>

The decoder has `factor` positions for each source token, so its packed rows follow from those of
the source. Which position writes which token is not given: the loss sums over all possibilities
(training/parallel/ctc.py, graph_loss.py). For that the pairs of the packed rows are laid out one
per row; this part follows the lengths of the sentences and is not compiled.

Glancing needs one alignment, the most probable one of a first pass without gradient. Some tokens of
the target are shown where this alignment writes them, more of them the more positions the first
pass got wrong (Qian et al. 2021; for graphs Huang et al. 2022, who keep the shown vertices at their
tokens in the loss). Positions are drawn among all that count; one with a blank shows nothing.

A target that needs more positions than there are has no alignment. Its loss is zero and it is not
counted; preflight warns of such pairs.

Tested against: sentences one by one, enumeration of all alignments of small cases, and training.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headwise.data.packing import PackedBatch
from headwise.models.parallel.segment_spans import upsample
from headwise.models.parallel.translator import ParallelTranslator
from headwise.models.unpacking import UnpackedSentences, unpack_sentences
from headwise.tasks.shape_only_modules import SENTENCE, cut_rows
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.tokenizer import BOS, EOS, PAD
from headwise.training.choices import GlancingObjective
from headwise.training.losses import LossSums
from headwise.training.parallel import ctc
from headwise.training.parallel.graph_alignment import best_path
from headwise.training.parallel.graph_loss import fits as fits_graph
from headwise.training.parallel.graph_loss import graph_loss
from headwise.training.parallel.length_groups import length_groups
from headwise.training.parallel.shown_tokens import choose_tokens
from headwise.training.parallel.token_scores import best_tokens, score_tokens


class Rows(NamedTuple):
    """The decoder's rows of a batch."""

    segment: Int[Tensor, "row position"]
    position: Int[Tensor, "row position"]


class PairsOfBatch(NamedTuple):
    """The pairs of a batch, one per row."""

    rows: UnpackedSentences
    """Where the positions of the decoder's rows go."""
    labels: Int[Tensor, "pair label"]
    """The tokens to be written, padded."""
    label_count: Int[Tensor, " pair"]
    num_tokens: Int[Tensor, " pair"]
    """Target tokens with the end of the sentence, by which the loss is divided."""


@dataclass(frozen=True)
class AlignmentLoss:
    """A parallel translator with a CTC or graph structure, and its objective."""

    module: ParallelTranslator
    recipe: TranslationRecipe
    chunk_size: int | None = None
    """Positions whose logits are made at a time; None: as many as suit the device."""

    @property
    def is_graph(self) -> bool:
        return self.module.links is not None

    def loss(self, batch: PackedBatch) -> LossSums:
        assert self.module.factor is not None
        memory = self.module.encode(
            batch.source, segment=batch.source_segment, position=batch.source_position
        )
        rows = Rows(
            *upsample(batch.source_segment, batch.source_position, factor=self.module.factor)
        )
        known = torch.full_like(rows.segment, PAD)
        is_real = self.module.training and not self.module.assumes_full_rows
        if is_real and isinstance(self.recipe.training.objective, GlancingObjective):
            known = self.glance(batch, rows, memory.detach())
        hidden = self.decode(batch, rows, memory, known)
        if self.module.assumes_full_rows:
            return self.sum_assumed(hidden)
        return self.sum_alignments(batch, rows, hidden, known)

    def decode(
        self,
        batch: PackedBatch,
        rows: Rows,
        memory: Float[Tensor, "row source dim"],
        known: Int[Tensor, "row position"],
    ) -> Float[Tensor, "row position dim"]:
        """Hidden states at all positions, of which the tokens `known` are shown."""
        tokens = self.module.read_target(
            known,
            batch.source,
            source_segment=batch.source_segment,
            target_segment=rows.segment,
            target_position=rows.position,
        )
        return self.module.decode(
            tokens,
            memory,
            source_segment=batch.source_segment,
            target_segment=rows.segment,
            target_position=rows.position,
        )

    @torch.compiler.disable
    def sum_alignments(
        self,
        batch: PackedBatch,
        rows: Rows,
        hidden: Float[Tensor, "row position dim"],
        known: Int[Tensor, "row position"],
    ) -> LossSums:
        """The loss of all pairs, summed."""
        pairs = self.unpack(batch, rows)
        states = pairs.rows.lay(hidden)
        if self.is_graph:
            shown = pairs.rows.lay(known[..., None])[..., 0]
            losses, fitting = self.graph_losses(pairs, states, shown)
        else:
            scores = self.score(states, self.candidates(pairs), pairs.rows.length)
            counts = {"position_count": pairs.rows.length, "label_count": pairs.label_count}
            losses = ctc.ctc_loss(scores, pairs.labels, **counts)
            fitting = ctc.fits(pairs.labels, **counts)
        total = losses.sum()
        num_tokens = torch.where(fitting, pairs.num_tokens, 0).sum()
        return LossSums(total, total.detach(), num_tokens)

    def sum_assumed(self, hidden: Float[Tensor, "row position dim"]) -> LossSums:
        """For plans, where batches have no content: the tables of sentences of one length, without
        the recursion over them, which is small beside the tables."""
        assert self.module.factor is not None
        states = cut_rows(hidden, SENTENCE * self.module.factor)
        labels = torch.ones(len(states), SENTENCE, dtype=torch.int64, device=hidden.device)
        count = labels[:, 0] * states.shape[1]
        total = self.score_all(states.flatten(0, 1), labels.repeat_interleave(states.shape[1], 0))
        total = total.sum()
        if self.module.links is not None:
            total = total + self.module.links(states, count).exp().sum()
        num_tokens = hidden.new_ones((), dtype=torch.int64)
        return LossSums(total, total.detach(), num_tokens)

    def unpack(self, batch: PackedBatch, rows: Rows) -> PairsOfBatch:
        """Where the positions of each pair are, and its labels: for CTC the target's tokens, for a
        graph also the beginning and the end of the sentence."""
        targets = unpack_sentences(batch.target_segment, batch.target_position)
        labels = targets.lay(batch.target_output[..., None])[..., 0]
        count = targets.length
        if self.is_graph:
            begin = torch.full_like(labels[:, :1], BOS)
            return PairsOfBatch(
                unpack_sentences(rows.segment, rows.position),
                torch.cat([begin, labels], dim=1),
                count + 1,
                count,
            )
        without_end = torch.where(labels == EOS, PAD, labels)
        return PairsOfBatch(
            unpack_sentences(rows.segment, rows.position), without_end, count - 1, count
        )

    def candidates(self, pairs: PairsOfBatch) -> Int[Tensor, "pair column"]:
        """The tokens whose probabilities are needed: for CTC also the blank, first."""
        if self.is_graph:
            return pairs.labels
        blank = torch.full_like(pairs.labels[:, :1], PAD)
        return torch.cat([blank, pairs.labels], dim=1)

    def score(
        self,
        states: Float[Tensor, "pair position dim"],
        candidates: Int[Tensor, "pair column"],
        position_count: Int[Tensor, " pair"],
    ) -> Float[Tensor, "pair position column"]:
        """Log-probabilities of each pair's own tokens at each of its positions; zeros in padding,
        which is most of a batch with one long sentence, so its logits are not computed."""
        num_pairs, num_positions, _ = states.shape
        index = torch.arange(num_positions, device=states.device)
        cell = (index < position_count[:, None]).flatten().nonzero()[:, 0]
        found = self.score_all(
            states.flatten(0, 1).index_select(0, cell), candidates[cell // num_positions]
        )
        table = found.new_zeros(num_pairs * num_positions, candidates.shape[1])
        return table.index_copy(0, cell, found).view(num_pairs, num_positions, -1)

    def score_all(
        self, states: Float[Tensor, "position dim"], candidates: Int[Tensor, "position column"]
    ) -> Float[Tensor, "position column"]:
        return score_tokens(
            states,
            self.module.output.weight,
            candidates=candidates,
            bias=self.module.output.bias,
            chunk_size=self.chunk_size,
        )

    def graph_losses(
        self,
        pairs: PairsOfBatch,
        states: Float[Tensor, "pair vertex dim"],
        shown: Int[Tensor, "pair vertex"],
    ) -> tuple[Float[Tensor, " pair"], Bool[Tensor, " pair"]]:
        """The losses of groups of pairs of similar size, and which pairs have a path."""
        assert self.module.links is not None
        losses = states.new_zeros(len(states), dtype=torch.float32)
        for group in length_groups(pairs.rows.length):
            vertices, labels = pairs.rows.length[group], pairs.label_count[group]
            width, depth = int(vertices.max()), int(labels.max())
            here = states[group, :width]
            wanted = pairs.labels[group, :depth]
            emissions = self.score(here, wanted, vertices)
            given = shown[group, :width, None]
            # A vertex whose token was shown writes this token, and learns nothing from it.
            emissions = torch.where(
                given == PAD,
                emissions,
                emissions.detach().masked_fill(given != wanted[:, None], -torch.inf),
            )
            links = self.module.links(here, vertices)
            found = graph_loss(emissions, links, vertices, labels)
            # A pair without any path at all has an infinite loss and no gradient.
            losses = losses.index_copy(0, group, found.float().nan_to_num(posinf=0.0))
        return losses, fits_graph(pairs.rows.length, pairs.label_count)

    @torch.compiler.disable
    @torch.no_grad()
    def glance(
        self, batch: PackedBatch, rows: Rows, memory: Float[Tensor, "row source dim"]
    ) -> Int[Tensor, "row position"]:
        """The tokens that the decoder is shown, at the positions of the best alignment."""
        self.module.eval()
        hidden = self.decode(batch, rows, memory, torch.full_like(rows.segment, PAD))
        pairs = self.unpack(batch, rows)
        states = pairs.rows.lay(hidden)
        aligned, written = self.align(pairs, states)
        self.module.train()
        best = best_tokens(
            hidden.flatten(0, 1), self.module.output.weight, bias=self.module.output.bias
        )
        first = pairs.rows.lay(best.token.view(*hidden.shape[:2], 1))[..., 0]
        wrong = (first != aligned) & written
        objective = self.recipe.training.objective
        assert isinstance(objective, GlancingObjective)
        progress = (self.module.training_step.number / self.recipe.training.steps).clamp(max=1)
        ratio = objective.start + (objective.end - objective.start) * progress
        real = torch.arange(states.shape[1], device=states.device) < pairs.rows.length[:, None]
        count = (ratio * wrong.sum(1, keepdim=True)).long().expand_as(aligned)
        # Blanks are drawn as well and show nothing: with half of all positions wrong, half of the
        # tokens are shown and not, as there are about as many blanks, all of them.
        shown = choose_tokens(count, written, real.long())
        chosen = torch.where(shown, aligned, PAD)
        return pairs.rows.gather_back(chosen[..., None])[..., 0]

    def align(
        self, pairs: PairsOfBatch, states: Float[Tensor, "pair position dim"]
    ) -> tuple[Int[Tensor, "pair position"], Bool[Tensor, "pair position"]]:
        """What each position writes in the best alignment, PAD for a blank; and which positions
        count: with CTC all, in a graph those that the path visits."""
        if not self.is_graph:
            found = ctc.best_alignment(
                self.score(states, self.candidates(pairs), pairs.rows.length),
                pairs.labels,
                position_count=pairs.rows.length,
                label_count=pairs.label_count,
            )
            tokens = self.candidates(pairs).gather(1, found.column)
            index = torch.arange(states.shape[1], device=states.device)
            counted = ctc.fits(
                pairs.labels, position_count=pairs.rows.length, label_count=pairs.label_count
            )
            return tokens, (index < pairs.rows.length[:, None]) & counted[:, None]
        assert self.module.links is not None
        tokens = pairs.labels.new_full(states.shape[:2], PAD)
        for group in length_groups(pairs.rows.length):
            vertices, labels = pairs.rows.length[group], pairs.label_count[group]
            width, depth = int(vertices.max()), int(labels.max())
            here, wanted = states[group, :width], pairs.labels[group, :depth]
            emissions = self.score(here, wanted, vertices)
            vertex = best_path(emissions, self.module.links(here, vertices), vertices, labels)
            row = group[:, None].expand_as(vertex)[vertex >= 0]
            tokens[row, vertex[vertex >= 0]] = wanted[vertex >= 0]
        return tokens, tokens != PAD
