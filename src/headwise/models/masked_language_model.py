"""An encoder that guesses hidden words from both sides: what it must know for that serves other tasks (BERT, Devlin et al. 2019).

    hidden = norm(gelu(narrow · x_place))         only the places asked for
    P(word) = softmax(E hidden + b)               E: the embedding itself

Tested: it learns to fill in; the encoder's weights are what a labeller starts from.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.blocks.initialization import Unfilled, initialize
from headwise.blocks.normalization import LayerNorm
from headwise.models.sentence_encoder import EncoderRung, SentenceEncoder, build_sentence_encoder


class GuessingHead(nn.Module):
    """From the vector of a place to one that is compared with the words'."""

    def __init__(self, dim: int, vocabulary_size: int) -> None:
        super().__init__()
        self.narrow = nn.Linear(dim, dim)
        self.norm = LayerNorm(dim)
        self.bias = nn.Parameter(torch.zeros(vocabulary_size))

    def forward(self, x: Float[Tensor, "place dim"]) -> Float[Tensor, "place dim"]:
        return self.norm(F.gelu(self.narrow(x)))


class MaskedLanguageModel(nn.Module):
    """An encoder and its guessing head; the words' vectors are the embedding's."""

    def __init__(self, encoder: SentenceEncoder, head: GuessingHead) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head

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
    ) -> Float[Tensor, "place dim"]:
        """What is compared with the words' vectors, for each place asked for."""
        x = self.encoder(tokens, segment=segment, position=position)
        return self.head(x.flatten(0, 1)[places])


def build_masked_language_model(
    settings: EncoderRung, *, vocabulary_size: int, generator: torch.Generator
) -> MaskedLanguageModel:
    """A freshly initialised model."""
    with Unfilled():
        encoder = build_sentence_encoder(settings, vocabulary_size=vocabulary_size)
        model = MaskedLanguageModel(encoder, GuessingHead(settings.dim, vocabulary_size))
    initialize(model, generator)
    return model
