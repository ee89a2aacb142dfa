"""A masked language model (BERT): an encoder that predicts masked tokens from both sides.

    hidden = norm(gelu(narrow · x_position))      only at the masked positions
    P(word) = softmax(E hidden + b)               E: the embedding itself
    P(next) = softmax(output tanh(narrow x_<s>))  for pairs: does the second sentence follow?

x is the output of the encoder. Devlin et al. 2019. Classifiers and taggers can start from the
trained encoder (tasks/pretraining/encoder_start.py).
Tested: it learns to predict masked tokens; the encoder's weights are what a labeller starts from.
"""

from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.blocks.normalization import LayerNorm
from headwise.initialization import (
    InitialWeights,
    Unfilled,
    initial_linear,
    initialize,
    xavier,
    zeros,
)
from headwise.models.sentence_encoder import (
    SentenceEncoder,
    TransformerEncoderSettings,
    build_sentence_encoder,
)
from headwise.settings.part_names import PartNames


class GuessingHead(nn.Module):
    """From the vector of a position to one that is compared with the words'."""

    part_names: ClassVar[PartNames] = {
        "narrow": ("head of masked tokens", "掩码词元预测层"),
        "norm": ("normalisation", "归一化"),
    }

    def __init__(self, dim: int, vocabulary_size: int) -> None:
        super().__init__()
        self.narrow = nn.Linear(dim, dim)
        self.norm = LayerNorm(dim)
        self.bias = nn.Parameter(torch.zeros(vocabulary_size))

    def initial_weights(self) -> InitialWeights:
        yield from initial_linear(self.narrow, xavier())
        yield self.bias, zeros

    def forward(self, x: Float[Tensor, "place dim"]) -> Float[Tensor, "place dim"]:
        return self.norm(F.gelu(self.narrow(x)))


class FollowingHead(nn.Module):
    """From the vector of a pair's first token to two logits: another sentence, the next one."""

    part_names: ClassVar[PartNames] = {
        "narrow": ("head of sentence pairs", "句对判断层"),
        "output": ("head of sentence pairs", "句对判断层"),
    }

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.narrow = nn.Linear(dim, dim)
        self.output = nn.Linear(dim, 2)

    def initial_weights(self) -> InitialWeights:
        yield from initial_linear(self.narrow, xavier())
        yield from initial_linear(self.output, xavier())

    def forward(self, x: Float[Tensor, "row time dim"]) -> Float[Tensor, "row time kind"]:
        return self.output(torch.tanh(self.narrow(x)))


class Guesses(NamedTuple):
    """Vectors to compare with the words', at the positions asked for.

    For pairs of sentences also the two logits at every token.
    """

    hidden: Float[Tensor, "place dim"]
    following: Float[Tensor, "row time kind"] | None


class MaskedLanguageModel(nn.Module):
    """An encoder and its heads; the words' vectors are the embedding's."""

    part_names: ClassVar[PartNames] = {
        "head": ("output", "输出层"),
        "output": ("output", "输出层"),
    }

    def __init__(
        self, encoder: SentenceEncoder, head: GuessingHead, following: FollowingHead | None
    ) -> None:
        super().__init__()
        self.encoder, self.head, self.following = encoder, head, following

    @property
    def word_vectors(self) -> Tensor:
        return self.encoder.embedding.table.weight

    def forward(
        self,
        tokens: Int[Tensor, "row time"],
        *,
        segment: Int[Tensor, "row time"],
        position: Int[Tensor, "row time"],
        places: Int[Tensor, " place"],
    ) -> Guesses:
        x = self.encoder(tokens, segment=segment, position=position)
        following = None if self.following is None else self.following(x)
        return Guesses(self.head(x.flatten(0, 1)[places]), following)


def build_masked_language_model(
    settings: TransformerEncoderSettings,
    *,
    vocabulary_size: int,
    has_pairs: bool,
    generator: torch.Generator | None,
) -> MaskedLanguageModel:
    """A new model; `has_pairs`: it also judges pairs of sentences.

    Without a generator weights are not initialised: they will be loaded.
    """
    with Unfilled():
        encoder = build_sentence_encoder(settings, vocabulary_size=vocabulary_size)
        following = FollowingHead(settings.dim) if has_pairs else None
        model = MaskedLanguageModel(encoder, GuessingHead(settings.dim, vocabulary_size), following)
    if generator is not None:
        initialize(model, generator)
    return model
