"""ELMo: the vector of a word is made of the hidden states of two language models, forward and
backward.

    x_t  = characters(word_t)                                        blocks/character_encoder.py
    →h_j = P LSTM(→h_{j-1}) (+ →h_{j-1} from the second layer on)     left to right        h_0 = x
    ←h_j = the same with weights of its own                           right to left
    P(word_{t+1} | words up to t)   = softmax(W →h_L(t) + b)
    P(word_{t-1} | words from t on) = softmax(W ←h_L(t) + b)
    vector_t = γ Σ_j softmax(s)_j [→h_j(t) ; ←h_j(t)]                 blocks/layer_mixture.py

t is the position of a word, j the layer, L the last layer. Both directions share the character
encoder and the softmax, and nothing between; otherwise a direction could see the words that it has
to predict. "bank" after "river" gets another vector than "bank" after "money", although its x is
the same. Peters et al. 2018: two layers of 4,096 with projections to 512.

Tested against: the LSTM's equations written out in double precision; the forward half does not
change when later words do, nor the backward half when earlier ones do; packed rows = sentences one
by one.
"""

from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from headwise.blocks.character_encoder import CharacterEncoder
from headwise.blocks.dropout import drop
from headwise.blocks.layer_mixture import LayerMixture
from headwise.blocks.recurrent_cells import turn_around
from headwise.initialization import (
    InitialWeights,
    Unfilled,
    initial_linear,
    initial_recurrent,
    initialize,
    normal_by_width,
)
from headwise.models.sentence_encoder import ElmoSettings
from headwise.settings.part_names import PartNames
from headwise.text.tokenizer import BOS
from headwise.text.word_characters import BEGIN_WORD, END_WORD, NUM_SIGNS


class DirectedLayer(nn.Module):
    """One LSTM with a projection, read in one direction; `weights` is torch's own layer."""

    def __init__(self, dim: int, hidden: int, *, reverse: bool, residual: bool) -> None:
        super().__init__()
        self.reverse, self.residual = reverse, residual
        # A projection to the full width is left out.
        self.weights = nn.LSTM(dim, hidden, proj_size=dim if hidden > dim else 0, batch_first=True)

    def initial_weights(self) -> InitialWeights:
        return initial_recurrent(self.weights)

    def forward(
        self, x: Float[Tensor, "sentence time dim"], lengths: Int[Tensor, " sentence"]
    ) -> Float[Tensor, "sentence time dim"]:
        """A state at each word; zeros after the sentence's end."""
        given = turn_around(x, lengths) if self.reverse else x
        packed = pack_padded_sequence(given, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(
            self.weights(packed)[0], batch_first=True, total_length=x.shape[1]
        )
        states = turn_around(states, lengths) if self.reverse else states
        return states + x if self.residual else states


class ElmoReader(nn.Module):
    """The two language models without their softmax; `dim` is the width of both halves together."""

    part_names: ClassVar[PartNames] = {
        "ahead.*": ("forward recurrent layers", "正向循环层"),
        "back.*": ("backward recurrent layers", "反向循环层"),
    }

    def __init__(self, settings: ElmoSettings) -> None:
        super().__init__()
        self.dropout, half = settings.dropout, settings.dim // 2
        self.characters = CharacterEncoder(
            NUM_SIGNS,
            letter_dim=settings.letter_dim,
            filters=settings.filters,
            num_highways=settings.highways,
            dim=half,
        )
        self.ahead, self.back = (
            nn.ModuleList(
                DirectedLayer(half, settings.hidden, reverse=reverse, residual=number > 0)
                for number in range(settings.layers)
            )
            for reverse in (False, True)
        )

    def forward(
        self,
        letters: Int[Tensor, "word letter"],
        words: Int[Tensor, "sentence time"],
        lengths: Int[Tensor, " sentence"],
    ) -> list[Float[Tensor, "sentence time dim"]]:
        """Every layer, the character vectors first.

        `letters` spells each different word once; `words` are rows of it.
        """
        x = self.characters(letters)[words]
        x = drop(x, self.dropout.embedding, training=self.training)
        layers, ahead, back = [torch.cat([x, x], dim=-1)], x, x
        for onward, backward in zip(self.ahead, self.back, strict=True):
            ahead = drop(onward(ahead, lengths), self.dropout.residual, training=self.training)
            back = drop(backward(back, lengths), self.dropout.residual, training=self.training)
            layers.append(torch.cat([ahead, back], dim=-1))
        return layers


class _SpelledSentences(NamedTuple):
    """Packed rows as separate sentences: the words of each, and where each token went."""

    letters: Tensor
    words: Tensor
    lengths: Tensor
    real: Tensor
    number: Tensor
    place: Tensor


class ElmoEncoder(nn.Module):
    """ELMo as a sentence encoder: rows of letters in, a mixture of the layers out."""

    part_names: ClassVar[PartNames] = {
        "mixture": ("mixture of layers", "各层的加权混合"),
    }

    def __init__(self, settings: ElmoSettings) -> None:
        super().__init__()
        self.dim = settings.dim
        self.reader, self.mixture = ElmoReader(settings), LayerMixture(settings.layers + 1)

    def forward(
        self,
        tokens: Int[Tensor, "row time"],
        *,
        segment: Int[Tensor, "row time"],
        position: Int[Tensor, "row time"],
        affixes: Int[Tensor, "row time letter"] | None = None,
    ) -> Float[Tensor, "row time dim"]:
        """A vector for each token, zeros in padding; `affixes` are the letters of each word."""
        assert affixes is not None, "rows of this encoder come with the letters of their words"
        found = self.mixture.gain.new_zeros(*tokens.shape, self.dim)
        if not bool((segment != 0).any()):
            return found
        sentences = unpack(tokens, segment, position, affixes)
        mixed = self.mixture(self.reader(sentences.letters, sentences.words, sentences.lengths))
        return found.to(mixed.dtype).masked_scatter(
            sentences.real[..., None].expand_as(found), mixed[sentences.number, sentences.place]
        )


def unpack(tokens: Tensor, segment: Tensor, position: Tensor, letters: Tensor) -> _SpelledSentences:
    """Sentences of rows, each between <s> (unless it has one) and </s>."""
    real = segment != 0
    starts = real & (position == 0)
    number = starts.flatten().cumsum(0).view_as(segment)[real] - 1
    ahead = (tokens[starts] != BOS).long()
    place = position[real] + ahead[number]
    lengths = torch.bincount(number) + ahead + 1
    spelled, index = torch.unique(letters[real], dim=0, return_inverse=True)
    marks = torch.tensor([BEGIN_WORD, END_WORD], device=tokens.device).to(spelled.dtype)
    begin, end = len(spelled), len(spelled) + 1
    words = torch.full((len(lengths), int(lengths.max())), end, device=tokens.device)
    words[:, 0] = begin
    words[number, place] = index
    return _SpelledSentences(torch.cat([spelled, marks]), words, lengths, real, number, place)


class BidirectionalLanguageModel(nn.Module):
    """The encoder and the softmax that both directions share.

    The mixture of layers is not trained here: each task learns its own.
    """

    part_names: ClassVar[PartNames] = {
        "output": ("output", "输出层"),
    }

    def __init__(self, encoder: ElmoEncoder, output: nn.Linear) -> None:
        super().__init__()
        self.encoder, self.output = encoder, output
        encoder.mixture.requires_grad_(False)  # noqa: FBT003 - torch's own

    def initial_weights(self) -> InitialWeights:
        return initial_linear(self.output, normal_by_width)

    def forward(
        self,
        letters: Int[Tensor, "word letter"],
        words: Int[Tensor, "sentence time"],
        lengths: Int[Tensor, " sentence"],
    ) -> tuple[Float[Tensor, "sentence time half"], Float[Tensor, "sentence time half"]]:
        """For each word of <s> … </s>: states that predict the next word and the word before."""
        ahead, back = self.encoder.reader(letters, words, lengths)[-1].chunk(2, dim=-1)
        return ahead, back


def build_bidirectional(
    settings: ElmoSettings, *, vocabulary_size: int, generator: torch.Generator | None
) -> BidirectionalLanguageModel:
    """A new model over a vocabulary.

    Without a generator weights are not initialised: they will be loaded.
    """
    with Unfilled():
        output = nn.Linear(settings.dim // 2, vocabulary_size)
        model = BidirectionalLanguageModel(ElmoEncoder(settings), output)
    if generator is not None:
        initialize(model, generator)
    return model
