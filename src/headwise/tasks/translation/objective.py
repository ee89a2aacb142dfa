"""The loss of translation, computed by a model of any kind on a batch of packed sentence pairs.

    loss(batch) = smoothed cross-entropy of the target given the source, summed over target tokens

The training loop passes batches in and gets sums back. This is the seventh file of the reading path
in the guide: it shows the whole way from rows of tokens to the number that training makes smaller.

Tested against: training on the pocket corpus, and packed rows = sentences one by one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.data.batching import ALL_ROWS, Cursor, PairSource, Share, batches, evaluation_batches
from headwise.data.packing import PackedBatch
from headwise.models.draft_decoder import DraftDecoder
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.translation_model import TranslationModel
from headwise.tasks.translation.draft_decoder_loss import add_draft_decoder_loss
from headwise.tasks.translation.draft_heads_loss import add_heads_loss
from headwise.training.losses import LossSums, cross_entropy
from headwise.training.updates import Trainable


@dataclass(frozen=True)
class TranslationLoss:
    """A model and its objective, as the training loop wants them."""

    module: TranslationModel
    label_smoothing: float
    chunk_size: int | None = None
    """Tokens whose logits are made at a time; None: as many as suit the device."""

    def loss(self, batch: PackedBatch) -> LossSums:
        module = self.module
        if isinstance(module, EncoderDecoder) and module.draft_decoder is not None:
            return self.loss_with_draft_decoder(module, module.draft_decoder, batch)
        hidden = module(
            batch.source,
            batch.target_input,
            source_segment=batch.source_segment,
            target_segment=batch.target_segment,
            source_position=batch.source_position,
            target_position=batch.target_position,
        )
        return self.sum_tokens(hidden, batch)

    def sum_tokens(self, hidden: Float[Tensor, "row target dim"], batch: PackedBatch) -> LossSums:
        """The loss at the decoder's states, with that of draft heads if there are some."""
        module = self.module
        sums = cross_entropy(
            hidden.flatten(0, 1),
            module.output.weight,
            targets=batch.target_output.flatten(),
            bias=module.output.bias,
            smoothing=self.label_smoothing,
            chunk_size=self.chunk_size,
        )
        if not isinstance(module, EncoderDecoder) or module.draft_heads is None:
            return sums
        return add_heads_loss(
            sums,
            module,
            module.draft_heads,
            hidden,
            batch,
            smoothing=self.label_smoothing,
            chunk_size=self.chunk_size,
        )

    def loss_with_draft_decoder(
        self, module: EncoderDecoder, drafter: DraftDecoder, batch: PackedBatch
    ) -> LossSums:
        """The same, for a model whose encoder is read by a second, small decoder."""
        memory = module.encode(
            batch.source, segment=batch.source_segment, position=batch.source_position
        )
        hidden = module.decode(
            batch.target_input,
            memory,
            source_segment=batch.source_segment,
            target_segment=batch.target_segment,
            target_position=batch.target_position,
        )
        return add_draft_decoder_loss(
            self.sum_tokens(hidden, batch),
            module,
            drafter,
            memory,
            batch,
            smoothing=self.label_smoothing,
            chunk_size=self.chunk_size,
        )


@dataclass(frozen=True)
class RowShape:
    """The static shape of every batch: how many rows, how long on each side."""

    rows: int
    source: int
    target: int


@dataclass(frozen=True)
class PackedPairs:
    """The training pairs as one endless stream of batches, or the share of one of several processes
    in it.
    """

    store: PairSource
    shape: RowShape
    seed: int
    fingerprint: str
    share: Share = ALL_ROWS

    def stream(
        self, cursor: Mapping[str, int] | None
    ) -> Iterator[tuple[PackedBatch, Mapping[str, int]]]:
        place = None if cursor is None else Cursor.from_json(cursor)
        for batch, after in batches(
            self.store,
            seed=self.seed,
            rows=self.shape.rows,
            source_row=self.shape.source,
            target_row=self.shape.target,
            cursor=place,
            share=self.share,
        ):
            yield batch, after.to_json()


@torch.inference_mode()
def validation_loss(task: Trainable, store: PairSource, shape: RowShape) -> dict[str, float]:
    """Mean loss and perplexity per target token over all pairs of a store, each counted once."""
    device = next(task.module.parameters()).device
    totals = torch.zeros(3, dtype=torch.float64, device=device)
    for batch in evaluation_batches(
        store, rows=shape.rows, source_row=shape.source, target_row=shape.target
    ):
        sums = task.loss(batch.to(device))
        totals += torch.stack([number.double() for number in sums[:3]])
    loss, negative_log_likelihood, num_tokens = totals.tolist()
    mean = negative_log_likelihood / max(num_tokens, 1)
    return {"loss": loss / max(num_tokens, 1), "perplexity": float(torch.tensor(mean).exp())}
