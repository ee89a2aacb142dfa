"""Classifier and tagger: one linear layer on a sentence encoder, per text or per word.

    one label per word    logits_t = W x_t + b
    one label per text    logits   = W pool(x) + b     pool: the mean over the text's tokens, or its
                                                       first token, <s> (BERT's [CLS])

In a packed row the pooled vector is repeated at every token of its text. So both cases have logits
of the same shape, and the label of a text is the target at its first token.
Tested against: the mean of a text read alone; packed rows = texts one by one.
"""

from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.blocks.dropout import drop
from headwise.initialization import (
    InitialWeights,
    Unfilled,
    initial_linear,
    initialize,
    normal_by_width,
)
from headwise.models.elmo import ElmoEncoder
from headwise.models.sentence_encoder import (
    ElmoSettings,
    SentenceEncoder,
    SentenceEncoderSettings,
    build_sentence_encoder,
)
from headwise.settings.part_names import PartNames

Pooling = Literal["mean", "first", "none"]
"""none: every word has its own label."""
Encoder = SentenceEncoder | ElmoEncoder


class LabelModel(nn.Module):
    """An encoder and the layer that predicts classes; `dropout_rate` acts between them."""

    part_names: ClassVar[PartNames] = {
        "output": ("class scores", "类别打分层"),
    }

    def __init__(
        self, encoder: Encoder, output: nn.Linear, *, pooling: Pooling, dropout_rate: float
    ) -> None:
        super().__init__()
        self.encoder, self.output = encoder, output
        self.pooling, self.dropout_rate = pooling, dropout_rate

    def initial_weights(self) -> InitialWeights:
        return initial_linear(self.output, normal_by_width)

    def forward(
        self,
        tokens: Int[Tensor, "row time"],
        *,
        segment: Int[Tensor, "row time"],
        position: Int[Tensor, "row time"],
        affixes: Int[Tensor, "row time affix"] | None = None,
    ) -> Float[Tensor, "row time class"]:
        """Logits at every token."""
        x = self.encoder(tokens, segment=segment, position=position, affixes=affixes)
        if self.pooling == "mean":
            x = mean_of_segments(x, segment)
        return self.output(drop(x, self.dropout_rate, training=self.training))


def mean_of_segments(
    x: Float[Tensor, "row time dim"], segment: Int[Tensor, "row time"]
) -> Float[Tensor, "row time dim"]:
    """At every token the mean over its sentence, in time linear in the row's length."""
    index = segment[..., None].expand_as(x)
    num_segments = segment.shape[1] + 1
    sums = x.new_zeros(x.shape[0], num_segments, x.shape[2]).scatter_add(1, index, x)
    ones = torch.ones_like(segment, dtype=x.dtype)
    counts = x.new_zeros(x.shape[0], num_segments).scatter_add(1, segment, ones)
    return (sums / counts.clamp(min=1)[..., None]).gather(1, index)


def build_encoder(settings: SentenceEncoderSettings, *, vocabulary_size: int) -> Encoder:
    """The encoder a recipe names, not initialised."""
    if isinstance(settings, ElmoSettings):
        return ElmoEncoder(settings)
    return build_sentence_encoder(settings, vocabulary_size=vocabulary_size)


def build_labeller(
    settings: SentenceEncoderSettings,
    *,
    vocabulary_size: int,
    num_classes: int,
    pooling: Pooling,
    generator: torch.Generator | None,
) -> LabelModel:
    """A new labeller. Without a generator weights are not initialised: they will be loaded."""
    with Unfilled():
        encoder = build_encoder(settings, vocabulary_size=vocabulary_size)
        output = nn.Linear(settings.dim, num_classes)
    model = LabelModel(encoder, output, pooling=pooling, dropout_rate=settings.dropout.residual)
    if generator is not None:
        initialize(model, generator)
    return model
