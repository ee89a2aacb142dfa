"""The loss of scheduled sampling: a translator that writes from left to right learns to go on after
its own predictions.

    passes       inputs_0 = gold tokens
                 for n = 1 … count:  predictions of a pass over inputs_n-1, without gradient;
                                     inputs_n = gold tokens and shifted predictions, mixed
                 loss = cross-entropy of a last pass over inputs_count
    sequential   a recurrent decoder reads at each step the gold token or what the step before it
                 predicts; the loss is that of the same steps

The targets are always those of the reference. The source is encoded once. Which tokens stay gold is
drawn once for all passes, so a prediction is replaced by a better founded one in each pass: after n
passes the first n inputs are those that a search would have read. The passes without gradient run
without dropout, as in glancing (parallel_loss.py). In sequential mixing a prediction comes from the
step that learns, with its dropout.

In packed rows a prediction at position t becomes the input at position t + 1 of the same sentence:
the input at position 0 is `<s>` and never replaced. A recurrent model unpacks the pairs first.
Validations read the right tokens (teacher forcing), so that their losses can be compared.

Tested against: teacher forcing to the bit at share 1; single unpacked sentences computed by hand
and greedy search through the stepper at share 0; sequential = as many passes as tokens.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.data.packing import PackedBatch
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.recurrent.decoders import Memory
from headwise.models.recurrent.translator import RecurrentTranslator
from headwise.models.translation_model import TranslationModel
from headwise.models.unpacking import unpack_pairs
from headwise.tasks.translation.objective import TranslationLoss
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.training.losses import LossSums
from headwise.training.sampling_choices import MixingInSteps, ScheduledSamplingObjective
from headwise.training.scheduled_sampling import (
    Draws,
    InputTokens,
    draw,
    gold_share,
    mix,
    predict,
    shift,
)


@dataclass(frozen=True)
class DecoderRows:
    """The rows of a batch as a decoder reads them."""

    gold: Int[Tensor, "row time"]
    position: Int[Tensor, "row time"]
    decode: Callable[[Float[Tensor, "row time dim"]], Float[Tensor, "row time dim"]]
    """Hidden states for embedded inputs."""


@dataclass(frozen=True)
class SampledLoss:
    """A translator and its objective."""

    module: TranslationModel
    recipe: TranslationRecipe
    chunk_size: int | None = None
    """Tokens whose logits are made at a time; None: as many as suit the device."""

    @property
    def objective(self) -> ScheduledSamplingObjective:
        objective = self.recipe.training.objective
        assert isinstance(objective, ScheduledSamplingObjective)
        return objective

    def loss(self, batch: PackedBatch) -> LossSums:
        plain = TranslationLoss(self.module, self.objective.label_smoothing, self.chunk_size)
        if not self.module.training:
            return plain.loss(batch)
        match self.module:
            case EncoderDecoder():
                return plain.sum_tokens(self.hidden_of_transformer(self.module, batch), batch)
            case RecurrentTranslator():
                if not self.module.assumes_full_rows and bool(self.share(self.module) >= 1):
                    return plain.loss(batch)
                return plain.sum_tokens(self.hidden_of_recurrent(self.module, batch), batch)
            case _:
                raise AssertionError(f"refused by the recipe: {type(self.module).__name__}")

    def share(self, module: EncoderDecoder | RecurrentTranslator) -> Float[Tensor, ""]:
        """The share of gold tokens in this update."""
        steps = self.recipe.training.steps
        return gold_share(self.objective.gold, module.training_step.number, steps=steps)

    def hidden_of_transformer(
        self, module: EncoderDecoder, batch: PackedBatch
    ) -> Float[Tensor, "row target dim"]:
        memory = module.encode(
            batch.source, segment=batch.source_segment, position=batch.source_position
        )

        def decode(x: Tensor) -> Tensor:
            return module.decode_embedded(
                x,
                memory,
                source_segment=batch.source_segment,
                target_segment=batch.target_segment,
                target_position=batch.target_position,
            )

        rows = DecoderRows(batch.target_input, batch.target_position, decode)
        inputs = self.mix_in_passes(module, rows, self.draw(module, rows))
        return decode(embed_inputs(module, inputs, rows.position))

    def hidden_of_recurrent(
        self, module: RecurrentTranslator, batch: PackedBatch
    ) -> Float[Tensor, "row target dim"]:
        if module.assumes_full_rows:
            rows, memory = recurrent_rows(module, batch.source, None, batch.target_input)
            return self.write(module, rows, memory)
        pairs = unpack_pairs(
            batch.source,
            batch.target_input,
            source_segment=batch.source_segment,
            target_segment=batch.target_segment,
            source_position=batch.source_position,
            target_position=batch.target_position,
        )
        rows, memory = recurrent_rows(module, pairs.source, pairs.source_length, pairs.target)
        return pairs.gather_back(self.write(module, rows, memory))

    def write(
        self, module: RecurrentTranslator, rows: DecoderRows, memory: Memory
    ) -> Float[Tensor, "row time dim"]:
        """Hidden states of a recurrent decoder, in one of the two ways."""
        draws = self.draw(module, rows)
        if isinstance(self.objective.mixing, MixingInSteps):
            return self.write_in_steps(module, rows, memory, draws)
        inputs = self.mix_in_passes(module, rows, draws)
        return rows.decode(embed_inputs(module, inputs, rows.position))

    def write_in_steps(
        self, module: RecurrentTranslator, rows: DecoderRows, memory: Memory, draws: Draws
    ) -> Float[Tensor, "row time dim"]:
        def read(time: int, output: Tensor) -> Tensor:
            here = slice(time, time + 1)
            place = None if draws.place is None else draws.place[:, here]
            predicted = self.predict(module, output.detach()[:, None], place)
            inputs = mix(rows.gold[:, here], predicted, draws.is_gold[:, here])
            return embed_inputs(module, inputs, rows.position[:, here])[:, 0]

        first = embed_inputs(module, InputTokens(rows.gold[:, :1, None]), rows.position[:, :1])
        return module.decoder.write(first[:, 0], memory, read, length=rows.gold.shape[1])

    def draw(self, module: EncoderDecoder | RecurrentTranslator, rows: DecoderRows) -> Draws:
        return draw(
            rows.gold,
            rows.position,
            share=self.share(module),
            prediction=self.objective.prediction,
        )

    @torch.compiler.disable
    def mix_in_passes(
        self, module: EncoderDecoder | RecurrentTranslator, rows: DecoderRows, draws: Draws
    ) -> InputTokens:
        """The inputs of the pass that learns."""
        assert not isinstance(self.objective.mixing, MixingInSteps)
        inputs = InputTokens(rows.gold[..., None])
        place = None if draws.place is None else draws.place.roll(-1, 1)
        with torch.no_grad():
            module.eval()
            for _ in range(self.objective.mixing.count):
                hidden = rows.decode(embed_inputs(module, inputs, rows.position))
                predicted = shift(self.predict(module, hidden, place))
                inputs = mix(rows.gold, predicted, draws.is_gold)
            module.train()
        return inputs

    def predict(
        self, module: TranslationModel, hidden: Tensor, place: Tensor | None
    ) -> InputTokens:
        return predict(
            hidden,
            module.output.weight,
            bias=module.output.bias,
            prediction=self.objective.prediction,
            place=place,
        )


def recurrent_rows(
    module: RecurrentTranslator, source: Tensor, lengths: Tensor | None, gold: Tensor
) -> tuple[DecoderRows, Memory]:
    """Unpacked pairs, and the memory of their sources."""
    memory = module.encode(source, lengths)
    position = torch.arange(gold.shape[1], device=gold.device).expand_as(gold)
    return DecoderRows(gold, position, lambda x: module.decoder(x, memory)[0]), memory


def embed_inputs(
    module: EncoderDecoder | RecurrentTranslator, inputs: InputTokens, position: Tensor
) -> Float[Tensor, "row time dim"]:
    """The vectors that the decoder reads; `position` is known to the embedding of a Transformer."""
    embedding, length = module.target_embedding, position.shape[1]
    if inputs.weight is None:
        return embedding(inputs.token[..., 0], position, length=length)
    weight = inputs.weight.to(embedding.table.weight.dtype)
    return embedding.mix(inputs.token, weight, position, length=length)
