"""Represents the contexts of CBOW (word vectors) as bags: each context is a weighted sum of
embedding rows.

A centre word with l context words on its left and r on its right has a bag of 2·window + 1 words.
Words in the context have weight 1/(l + r), the others 0, so that the sum is the mean of the
context. For the gradient, each position in the text has a bag of 2·window + 1 centres. A centre has
weight 1 if the position is in its context; the sum of the gradients of these centres is the
gradient of the word at the position.

    text     … a b [c d e f] g h …        batch = 4, window = 2
    centre d     words b c d e f, weights 0 ½ 0 ½ 0   (radius 1)
    position b   centre c has weight 1 if its radius is at least 1, …

`embedding_bag` reads and sums the rows in one pass: three times faster here than gathering them and
multiplying by a matrix that is mostly 0. Which of the 2·window + 1 words are in the context follows
from (l, r), so the weights are rows of a table.

Tested against: the pairs of `context_windows.py` for the same draws, in both directions.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class Bags:
    """Batches of neighbouring centres; each bag has `near` = 2·window + 1 entries."""

    centres: Int[Tensor, "batch centre"]
    words: Int[Tensor, "batch centre_near"]
    """For each centre the words around it, with padding."""
    averaging: Float[Tensor, "batch centre_near"]
    """Their weights: the sum is the mean of the context, 0 for an empty one."""
    places: Int[Tensor, "batch place"]
    """The words of the batch and of `window` positions before and after it."""
    watchers: Int[Tensor, "place_near"]
    """For each position the centres around it; the same in every batch."""
    spreading: Float[Tensor, "batch place_near"]
    """1 if the position is in the context of that centre, else 0."""
    near: int


class BagCutter:
    """Cuts subsampled text into batches of at most `batch` centres, in whole blocks of `share`."""

    def __init__(self, *, window: int, share: int, batch: int) -> None:
        self.window, self.share, self.blocks = window, share, max(1, batch // share)
        self.near = 2 * window + 1
        offset = np.arange(-window, window + 1)
        left, right = (side.reshape(-1, 1) for side in np.indices((window + 1, window + 1)))
        in_sight = (np.abs(offset) <= np.where(offset < 0, left, right)) & (offset != 0)
        self.in_sight = torch.from_numpy(in_sight.astype(np.float32))
        self.averaging = self.in_sight / self.in_sight.sum(1, keepdim=True).clamp_(min=1)

    def cut(
        self, ids: np.ndarray, sentences: np.ndarray, *, generator: np.random.Generator
    ) -> Bags:
        """All centres of a piece of text, each with its own radius; batches have equal size."""
        num_blocks = -(-len(ids) // self.share)
        num_batches = -(-num_blocks // self.blocks)
        size = -(-num_blocks // num_batches) * self.share
        window, near, padding = self.window, self.near, num_batches * size - len(ids)
        text = F.pad(torch.from_numpy(ids), (window, window + padding))
        # Padding has an empty context: (0, 0) is the first row of the tables.
        rows = F.pad(torch.from_numpy(self._sight(sentences, generator)), (0, padding))
        looks = F.pad(
            self.in_sight.index_select(0, rows).view(num_batches, size, near),
            (0, 0, 2 * window, 2 * window),
        )
        # Position p is offset 2·window - t of centre p - 2·window + t.
        seen = looks.as_strided(
            (num_batches, size + 2 * window, near), (looks.stride(0), near, near - 1), 2 * window
        )
        watchers = torch.arange(size + 2 * window, dtype=torch.int32)[:, None] + torch.arange(
            -2 * window, 1
        )
        return Bags(
            centres=text[window : len(text) - window].long().view(num_batches, size),
            words=text.unfold(0, near, 1).reshape(num_batches, -1),
            averaging=self.averaging.index_select(0, rows).view(num_batches, -1),
            places=text.unfold(0, size + 2 * window, size).long(),
            watchers=watchers.clamp_(0, size - 1).int().view(-1),
            spreading=seen.reshape(num_batches, -1),
            near=near,
        )

    def _sight(self, sentences: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """The context of each centre as a row of the tables: its radius, within its sentence."""
        radius = generator.integers(1, self.window + 1, len(sentences), dtype=np.int16)
        place = np.arange(len(sentences))
        first = np.flatnonzero(np.diff(sentences, prepend=-1))
        lengths = np.diff(first, append=len(sentences))
        left = np.minimum(radius, place - np.repeat(first, lengths))
        right = np.minimum(radius, np.repeat(first + lengths - 1, lengths) - place)
        return left * (self.window + 1) + right
