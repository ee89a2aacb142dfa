"""A bidirectional recurrent encoder: two recurrent networks read the sentence, from left and right.

    h_t = [f→(h→_t-1, x_t) ; f←(h←_t+1, x_t)]     dim/2 numbers each; every layer reads both halves
                                                  of the one below

A word's vector can depend on any other word of the sentence, but information from far away has
passed through every word between. This is the tagger of Huang, Xu & Yu 2015 and Plank et al. 2016
without a CRF. Its layers are those of the recurrent translator's encoder. Sentences of a packed row
are unpacked to one per row (unpacking.py), so none begins with the state of another.

Tested against: torch's nn.RNN, nn.LSTM and nn.GRU with the same weights; packed rows = sentences
one by one.
"""

from typing import ClassVar

from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.blocks.recurrent_cells import CellKind, RecurrentLayer
from headwise.models.recurrent.translator import RecurrentEncoder
from headwise.models.unpacking import unpack_sentences
from headwise.settings.part_names import PartNames


class SentenceReader(nn.Module):
    """A recurrent encoder on packed rows."""

    part_names: ClassVar[PartNames] = {
        "layers.forwards": ("forward recurrent layers", "正向循环层"),
        "layers.backwards": ("backward recurrent layers", "反向循环层"),
    }

    def __init__(self, layers: RecurrentEncoder) -> None:
        super().__init__()
        self.layers = layers

    def forward(
        self,
        x: Float[Tensor, "row time dim"],
        segment: Int[Tensor, "row time"],
        position: Int[Tensor, "row time"],
    ) -> Float[Tensor, "row time dim"]:
        """A state at each word; zeros in padding."""
        sentences = unpack_sentences(segment, position)
        read = self.layers(sentences.lay(x), sentences.length).states
        # Cells may run in half precision; the result has the precision of the input.
        return sentences.gather_back(read).to(x.dtype)


def build_sentence_reader(
    cell: CellKind, dim: int, *, num_layers: int, bidirectional: bool, dropout_rate: float
) -> SentenceReader:
    """Not initialised. `dim` is the width of both directions; dropout acts between layers."""
    width = dim // 2 if bidirectional else dim

    def layers() -> list[RecurrentLayer]:
        return [RecurrentLayer(cell, dim, width) for _ in range(num_layers)]

    return SentenceReader(
        RecurrentEncoder(layers(), layers() if bidirectional else [], dropout_rate=dropout_rate)
    )
