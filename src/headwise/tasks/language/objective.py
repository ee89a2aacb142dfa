"""Computes the loss of a neural language model, and makes the batches it learns from.

    loss(batch) = smoothed cross-entropy of each token given the tokens before it, summed

A network learns from the batches that suit it: packed sentences (neural n-gram, Transformer),
padded sentences (recurrent), a carried stream (recurrent, or a Transformer with a memory) or
shuffled windows of it (Transformer without one).
Tested by learning a small grammar to its entropy, and by resuming bit for bit.
"""

from dataclasses import dataclass, replace

import torch
from torch import nn

from headwise.data.batching import ALL_ROWS, Share
from headwise.data.packing import PackedBatch
from headwise.data.shards import Ragged
from headwise.data.shared_batches import SharedBatches, check_accumulation, rows_of_share
from headwise.data.text.text_batches import (
    LineStore,
    PackedLines,
    PaddedLines,
    StreamWindows,
    TextBatch,
    cut_lines,
    fingerprint,
    join_lines,
)
from headwise.models.choices import (
    DecoderOnlySettings,
    LanguageModelSettings,
    LanguageNetwork,
    NeuralSettings,
    build_language_model,
)
from headwise.models.pair_ring import PairRing, RingShape
from headwise.models.recurrent.language_model import (
    Carrying,
    RecurrentLanguageModel,
    RecurrentPenalty,
    RecurrentSettings,
)
from headwise.models.segment_memory import CarriedMemory, NearestMemory, Remembering
from headwise.tasks.language.recipe import LanguageRecipe, SentenceReading, StreamReading
from headwise.tasks.planned_step import PlannedStep, Vocabularies
from headwise.tasks.recurrent_training import train_word_by_word
from headwise.tasks.shape_only_modules import SENTENCE
from headwise.text.tokenizer import PAD
from headwise.training.losses import LossSums, cross_entropy
from headwise.training.prefetching import Batches


@dataclass(frozen=True)
class LanguageLoss:
    """A network and its loss; `module` carries states where the text is a carried stream."""

    module: nn.Module
    network: LanguageNetwork
    label_smoothing: float
    penalty: RecurrentPenalty | None = None
    chunk_size: int | None = None
    """Tokens whose logits are made at a time; None: as many as suit the device."""

    def loss(self, batch: PackedBatch | TextBatch) -> LossSums:
        if isinstance(batch, PackedBatch):
            hidden = self.module(
                batch.target_input, segment=batch.target_segment, position=batch.target_position
            )
            targets = batch.target_output
        else:
            targets = batch.targets
            match self.module:
                case Carrying() | Remembering():
                    hidden = self.module(batch.tokens, batch.fresh)
                case RecurrentLanguageModel():
                    hidden = self.module(batch.tokens)[0]
                case _:
                    hidden = self.module(batch.tokens)
        output = self.network.output
        sums = cross_entropy(
            hidden.flatten(0, 1),
            output.weight,
            targets=targets.flatten(),
            bias=output.bias,
            smoothing=self.label_smoothing,
            chunk_size=self.chunk_size,
        )
        if self.penalty is None:
            return sums
        return sums.with_loss(sums.loss + sums.num_tokens * self.penalty.of(hidden, targets != PAD))


def carries_states(settings: LanguageModelSettings) -> bool:
    """Whether a model reads a stream on from window to window."""
    if isinstance(settings, DecoderOnlySettings):
        return isinstance(settings.memory, CarriedMemory)
    return isinstance(settings, RecurrentSettings)


@dataclass(frozen=True)
class CarriedRows:
    """The rows of a batch whose states go on from batch to batch; this process has `first` to
    `last`."""

    num_rows: int
    first: int
    last: int

    @property
    def num_own(self) -> int:
        """A process without rows reads one without targets."""
        return max(1, self.last - self.first)


def make_loss(
    recipe: LanguageRecipe,
    network: LanguageNetwork,
    *,
    rows: CarriedRows | None,
) -> LanguageLoss:
    """The loss of a recipe; `rows` of a batch carry their state to the next one, None if none
    do."""
    module: nn.Module = network if rows is None else _carry(recipe, network, rows)
    return _loss_of(recipe, module, network, None)


def _carry(recipe: LanguageRecipe, network: LanguageNetwork, rows: CarriedRows) -> nn.Module:
    """The network with the states of its rows."""
    if isinstance(network, RecurrentLanguageModel):
        return Carrying(network, rows.num_own)
    settings = recipe.model
    assert isinstance(settings, DecoderOnlySettings)
    assert isinstance(settings.memory, CarriedMemory)
    shape = ring_shape(recipe, rows.num_rows)
    return Remembering(
        network,
        num_layers=settings.layers,
        dim=settings.dim,
        length=settings.memory.length,
        num_rows=rows.num_rows,
        own=(rows.first, rows.last),
        ring=None if shape is None else PairRing(shape),
    )


def ring_shape(recipe: LanguageRecipe, num_rows: int) -> RingShape | None:
    """What a training stores for lookups; None: nothing."""
    model, reading = recipe.model, recipe.reading
    if not isinstance(model, DecoderOnlySettings) or not isinstance(model.memory, NearestMemory):
        return None
    assert isinstance(reading, StreamReading), "a memory belongs to a stream"
    room = model.memory.length + model.memory.size + reading.length
    return RingShape(num_rows, model.heads, room, model.dim // model.heads)


def _loss_of(
    recipe: LanguageRecipe, module: nn.Module, network: LanguageNetwork, chunk_size: int | None
) -> LanguageLoss:
    penalty = recipe.model.penalty if isinstance(recipe.model, RecurrentSettings) else None
    penalty = None if penalty == RecurrentPenalty() else penalty
    smoothing = recipe.training.objective.label_smoothing
    return LanguageLoss(module, network, smoothing, penalty, chunk_size)


def plan_step(recipe: LanguageRecipe, sizes: Vocabularies) -> PlannedStep:
    """The training step of a recipe as shapes: windows of a stream, packed rows, or one line a row
    for a recurrent model.
    """
    settings, reading = recipe.model, recipe.reading
    assert isinstance(settings, NeuralSettings), "n-grams have no training step"
    is_recurrent, is_stream = settings.kind == "recurrent", isinstance(reading, StreamReading)
    carried = is_stream and carries_states(settings)
    is_packed = not is_recurrent and not is_stream
    if isinstance(reading, StreamReading):
        row = reading.length
    else:
        row = min(SENTENCE, reading.row_tokens) if is_recurrent else reading.row_tokens

    def build(rows: int) -> nn.Module:
        network = build_language_model(settings, size=sizes.target, generator=None)
        return _carry(recipe, network, CarriedRows(rows, 0, rows)) if carried else network

    def trainable(module: nn.Module, chunk_size: int) -> LanguageLoss:
        network = module.model if isinstance(module, Carrying | Remembering) else module
        assert isinstance(network, LanguageNetwork)
        return _loss_of(recipe, module, network, chunk_size)

    def batch(rows: int, length: int) -> PackedBatch | TextBatch:
        ones = torch.ones(rows, length, dtype=torch.int64)
        if is_packed:
            return PackedBatch(ones, ones, ones, ones, ones, ones, ones)
        return TextBatch(ones, ones, torch.zeros(rows, dtype=torch.bool))

    # A recurrent layer is one call of torch's, and padded batches have no fixed shape.
    training = train_word_by_word(recipe.training) if is_recurrent else recipe.training
    step = PlannedStep(training, build, trainable, batch, row=row, num_logits=sizes.target)
    if is_packed:
        return step
    return replace(
        step, refuse_share=lambda share, rows, row: check_accumulation(share, carried=carried)
    )


def carried_rows(batches: Batches, share: Share) -> CarriedRows | None:
    """Rows of a process whose state goes on from batch to batch; None if none does."""
    if not isinstance(batches, SharedBatches) or not batches.carried:
        return None
    assert isinstance(batches.batches, StreamWindows)
    num_rows = batches.batches.rows
    return CarriedRows(num_rows, *rows_of_share(num_rows, share))


def make_batches(recipe: LanguageRecipe, lines: Ragged, share: Share = ALL_ROWS) -> Batches:
    """The batches that suit the network, or one process's share of them."""
    training, is_recurrent = recipe.training, recipe.model.kind == "recurrent"
    carried = carries_states(recipe.model)
    name = fingerprint(lines, recipe.reading.model_dump_json())
    match recipe.reading:
        case StreamReading(length=length):
            windows = StreamWindows.of(
                join_lines(lines),
                batch_tokens=training.batch_tokens,
                length=length,
                carried=carried,
                seed=training.seed,
                fingerprint=name,
            )
            return SharedBatches(windows, share, carried=carried)
        case SentenceReading(row_tokens=row_tokens):
            cut = cut_lines(lines, row_tokens - 1)
            if is_recurrent:
                padded = PaddedLines(cut, training.batch_tokens, training.seed, name)
                return SharedBatches(padded, share)
            rows = max(1, round(training.batch_tokens / row_tokens))
            return PackedLines(LineStore(cut), rows, row_tokens, training.seed, name, share)
