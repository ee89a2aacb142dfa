"""The recurrent translator: a recurrent encoder reads the source, a recurrent decoder writes.

    h_j = [f→(h→_j-1, x_j); f←(h←_j+1, x_j)]     both directions in every layer, dim/2 numbers each
    s_0 = the encoder's last states, layer by layer
    out_t = decoder(s_t-1, y_t-1, h)             with or without attention: decoders.py
    P(y_t) = softmax(out_t · output_weightᵀ)

x_j is the j-th source word, y_t the t-th target word, f the recurrent cell. Without attention all
information about the source has to fit into s_0 (Sutskever et al. 2014; Cho et al. 2014); with
attention every step reads all source states (Bahdanau et al. 2015; Luong et al. 2015). Batches,
losses and searches are the Transformer's: packed rows are unpacked inside (unpacking.py).

Tested against: torch's nn.LSTM, nn.GRU and nn.RNN in both directions with copied weights; packed =
padded = one by one.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.blocks.dropout import drop
from headwise.blocks.embeddings import TokenEmbedding
from headwise.blocks.recurrent_cells import RecurrentLayer, turn_around
from headwise.initialization import InitialWeights, initial_linear, normal_by_width
from headwise.models.recurrent.decoders import Memory, RecurrentDecoder
from headwise.models.translation_model import TranslationModel
from headwise.models.unpacking import unpack_pairs
from headwise.settings.part_names import PartNames

Layers = Sequence[RecurrentLayer]
"""What a `ModuleList` of layers is to its users, though not to the type checker."""


class RecurrentEncoder(nn.Module):
    """Layers of one direction or of two side by side; the next layer reads both."""

    def __init__(
        self,
        forwards: list[RecurrentLayer],
        backwards: list[RecurrentLayer],
        *,
        dropout_rate: float = 0.0,
    ) -> None:
        """`backwards` is empty, or has a layer for each of `forwards`."""
        super().__init__()
        self.forwards: Layers = nn.ModuleList(forwards)  # type: ignore[assignment]
        self.backwards: Layers = nn.ModuleList(backwards)  # type: ignore[assignment]
        self.dropout_rate = dropout_rate

    def forward(
        self, x: Float[Tensor, "pair source dim"], lengths: Int[Tensor, " pair"] | None
    ) -> Memory:
        """`lengths`: words of each sentence; None: no padding anywhere."""
        last = []
        for number, layer in enumerate(self.forwards):
            x = drop(x, self.dropout_rate, training=self.training) if number > 0 else x
            read, state = layer(x, lengths=lengths)
            if len(self.backwards) > 0:
                returned, other = self.backwards[number](turn_around(x, lengths), lengths=lengths)
                read = torch.cat([read, turn_around(returned, lengths)], -1)
                state = tuple(torch.cat(parts, -1) for parts in zip(state, other, strict=True))
            last.append(state)
            x = read
        if lengths is None:
            return Memory(x, last)
        return Memory(x, last, torch.arange(x.shape[1], device=x.device) < lengths[:, None])


class RecurrentTranslator(TranslationModel):
    """Parts are handed in by `build_recurrent` (models/recurrent/choices.py)."""

    part_names: ClassVar[PartNames] = {
        "encoder": ("encoder's recurrent layers", "编码器循环层"),
        "decoder.layers": ("decoder's recurrent layers", "解码器循环层"),
        "decoder.attention": ("attention and readout", "注意力与读出层"),
        "decoder.widen": ("attention and readout", "注意力与读出层"),
    }

    def __init__(
        self,
        *,
        source_embedding: TokenEmbedding,
        target_embedding: TokenEmbedding,
        encoder: RecurrentEncoder,
        decoder: RecurrentDecoder,
        output: nn.Linear,
    ) -> None:
        super().__init__()
        self.source_embedding = source_embedding
        self.target_embedding = target_embedding
        self.encoder = encoder
        self.decoder = decoder
        self.output = output
        self.assumes_full_rows = False
        """Take each row as one pair without padding, so that a batch without content will do."""

    def initial_weights(self) -> InitialWeights:
        return initial_linear(self.output, normal_by_width)

    @property
    def has_attention(self) -> bool:
        return self.decoder.attention is not None

    def forward(
        self,
        source: Int[Tensor, "row source"],
        target_input: Int[Tensor, "row target"],
        *,
        source_segment: Int[Tensor, "row source"],
        target_segment: Int[Tensor, "row target"],
        source_position: Int[Tensor, "row source"],
        target_position: Int[Tensor, "row target"],
    ) -> Float[Tensor, "row target dim"]:
        if self.assumes_full_rows:
            return self._write(self.encode(source, None), target_input)[0]
        pairs = unpack_pairs(
            source,
            target_input,
            source_segment=source_segment,
            target_segment=target_segment,
            source_position=source_position,
            target_position=target_position,
        )
        hidden, _ = self._write(self.encode(pairs.source, pairs.source_length), pairs.target)
        return pairs.gather_back(hidden)

    def encode(
        self, source: Int[Tensor, "pair source"], lengths: Int[Tensor, " pair"] | None
    ) -> Memory:
        """The encoder's states for sentences of these lengths (None: as long as the row)."""
        return self.encoder(embed(self.source_embedding, source), lengths)

    def _write(self, memory: Memory, target_input: Tensor) -> tuple[Tensor, Tensor | None]:
        return self.decoder(embed(self.target_embedding, target_input), memory)

    def attention_maps(
        self, source: Int[Tensor, "row source"], target_input: Int[Tensor, "row target"]
    ) -> Mapping[str, Float[Tensor, "row head query key"]]:
        _, weights = self._write(self.encode(source, None), target_input)
        return {} if weights is None else {"decoder.0.cross": weights[:, None]}


def embed(
    embedding: TokenEmbedding, tokens: Int[Tensor, "pair time"]
) -> Float[Tensor, "pair time dim"]:
    """Embeddings without positions: a recurrent model reads in order."""
    return embedding(tokens, tokens, length=tokens.shape[1])
