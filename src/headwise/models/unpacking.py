"""From packed rows to one pair (or sentence) per row and back, for recurrent models.

Attention keeps the pairs of a packed row apart by a mask. A recurrent model would have to read them
one after the other, 128 steps for every row. Unpacked, all pairs of a batch are read side by side,
in as many steps as the longest has words:

    row     a₁ a₂ a₃ b₁ b₂ ·                a₁ a₂ a₃
            c₁ c₂ c₃ c₄ c₅ ·       →        b₁ b₂ ·  ·  ·
                                            c₁ c₂ c₃ c₄ c₅

Results are written back to the positions of their tokens, so the loss is computed on packed rows as
for a Transformer. The number of pairs and the length of the longest are read from the batch: shapes
follow the data, and on a GPU the host waits once for this answer.

Tested against: packed = padded = one by one through the whole model.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor


@dataclass(frozen=True)
class UnpackedPairs:
    """The pairs of a batch, one per row, and where their target tokens came from."""

    source: Int[Tensor, "pair source"]
    source_length: Int[Tensor, " pair"]
    target: Int[Tensor, "pair target"]
    cell: Int[Tensor, "row packed_target"]
    """The cell in `target`, row by row, of each packed position; padding: one past the last."""

    def gather_back(
        self, hidden: Float[Tensor, "pair target dim"]
    ) -> Float[Tensor, "row packed_target dim"]:
        """What was computed for each target token, where it stood; zeros in padding."""
        return _gather(hidden, self.cell)


@dataclass(frozen=True)
class UnpackedSentences:
    """Where the sentences of a batch go, one per row."""

    cell: Int[Tensor, "row time"]
    """The cell, counted row by row, of each packed position; padding: one past the last."""
    length: Int[Tensor, " sentence"]
    width: int

    def lay(self, x: Shaped[Tensor, "row time dim"]) -> Shaped[Tensor, "sentence width dim"]:
        """Each vector to its cell; zeros after a sentence's end."""
        num_cells = len(self.length) * self.width
        flat = x.new_zeros(num_cells + 1, x.shape[-1]).index_copy(
            0, self.cell.flatten(), x.flatten(0, 1)
        )
        return flat[:-1].view(-1, self.width, x.shape[-1])

    def gather_back(
        self, hidden: Shaped[Tensor, "sentence width dim"]
    ) -> Shaped[Tensor, "row time dim"]:
        """What was computed for each token, where it stood; zeros in padding."""
        return _gather(hidden, self.cell)


def _gather(hidden: Tensor, cell: Tensor) -> Tensor:
    flat = hidden.flatten(0, 1)
    real = cell < len(flat)
    return torch.where(real[..., None], flat[torch.where(real, cell, 0)], 0)


def unpack_sentences(
    segment: Int[Tensor, "row time"], position: Int[Tensor, "row time"]
) -> UnpackedSentences:
    """One sentence per row, as wide as the longest; a batch of padding is one such sentence."""
    sentences_of_row = segment.amax(1)
    first = (sentences_of_row.cumsum(0) - sentences_of_row)[:, None]
    real = segment > 0
    asked = torch.stack(
        [sentences_of_row.sum().clamp_min(1), torch.where(real, position + 1, 1).max()]
    )
    num_sentences, width = asked.tolist()
    number = torch.where(real, first + segment - 1, num_sentences)
    length = number.new_zeros(num_sentences + 1).scatter_add_(
        0, number.flatten(), real.long().flatten()
    )[:-1]
    return UnpackedSentences(
        torch.where(real, number * width + position, num_sentences * width),
        length.clamp_min(1),
        width,
    )


def unpack_pairs(
    source: Int[Tensor, "row source"],
    target: Int[Tensor, "row target"],
    *,
    source_segment: Int[Tensor, "row source"],
    target_segment: Int[Tensor, "row target"],
    source_position: Int[Tensor, "row source"],
    target_position: Int[Tensor, "row target"],
) -> UnpackedPairs:
    """One pair per row, as wide as the longest; a batch of padding becomes one such pair."""
    pairs_of_row = torch.maximum(source_segment.amax(1), target_segment.amax(1))
    first = (pairs_of_row.cumsum(0) - pairs_of_row)[:, None]
    longest = [
        torch.where(segment > 0, position + 1, 1).max()
        for segment, position in (
            (source_segment, source_position),
            (target_segment, target_position),
        )
    ]
    num_pairs, source_width, target_width = torch.stack(
        [pairs_of_row.sum().clamp_min(1), *longest]
    ).tolist()

    def cells(segment: Tensor, position: Tensor, width: int) -> Tensor:
        return torch.where(segment > 0, (first + segment - 1) * width + position, num_pairs * width)

    def lay(tokens: Tensor, cell: Tensor, width: int) -> Tensor:
        # Padding is written to one cell past the end, which is cut off.
        flat = tokens.new_zeros(num_pairs * width + 1).scatter_(0, cell.flatten(), tokens.flatten())
        return flat[:-1].view(num_pairs, width)

    source_cell = cells(source_segment, source_position, source_width)
    target_cell = cells(target_segment, target_position, target_width)
    length = lay((source_segment > 0).long(), source_cell, source_width).sum(1).clamp_min(1)
    return UnpackedPairs(
        lay(source, source_cell, source_width),
        length,
        lay(target, target_cell, target_width),
        target_cell,
    )
