"""Cuts text into the context windows from which word vectors learn, in blocks of neighbouring
centre words.

word2vec moves over the text one centre at a time, draws a radius r from 1..window and pairs the
centre with the r words on either side. Here `share` neighbouring centres form a block. Their
contexts are the block itself and `window` words around it, and a mask [centre, context] says which
pairs exist. Negative samples are drawn once for a block. Each pair is as in word2vec, but the pairs
of a block are products of small matrices instead of a loop over vectors.

    text     … a b [c d e f] g h …        share = 4, window = 2
    mask     row c: b d  or  a b d e      (radius 1 or 2), never across the end of a sentence

Very frequent words are subsampled first: a word of frequency f is kept with probability (√(f/t) +
1)·t/f, where t is a threshold (Mikolov et al. 2013; the formula of the C code). The random numbers
of each chunk of text depend on (seed, epoch, chunk) alone.

Tested against: the double loop of word2vec written out; binomial and chi-squared bounds on the
draws.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F


def keep_probabilities(counts: np.ndarray, threshold: float) -> np.ndarray:
    """The probability that each word is kept; a threshold of 0 keeps everything."""
    if threshold == 0:
        return np.ones(len(counts))
    excess = counts / counts.sum() / threshold
    return np.minimum(1.0, (np.sqrt(excess) + 1) / excess)


class NegativeSampler:
    """Draws negative samples in proportion to count^power (0.75).

    Walker's alias method (1977): V columns of equal width, each shared by at most two words. A draw
    is one column and one comparison for any V, three times faster here than a search in cumulative
    sums.
    """

    def __init__(self, counts: np.ndarray, power: float) -> None:
        masses = counts.astype(np.float64) ** power
        level = (masses * (len(counts) / masses.sum())).tolist()
        self.share, self.other = np.ones(len(counts)), np.arange(len(counts))
        small = [word for word, mass in enumerate(level) if mass < 1]
        large = [word for word, mass in enumerate(level) if mass >= 1]
        while small and large:
            below, above = small.pop(), large[-1]
            self.share[below], self.other[below] = level[below], above
            level[above] -= 1 - level[below]
            if level[above] < 1:
                small.append(large.pop())

    def draw(self, shape: tuple[int, ...], generator: np.random.Generator) -> Int[Tensor, "..."]:
        column = generator.integers(0, len(self.share), shape)
        mine = generator.random(shape, dtype=np.float32) < self.share[column]
        return torch.from_numpy(np.where(mine, column, self.other[column]))


@dataclass(frozen=True)
class Windows:
    """Blocks of centres and the contexts around them."""

    centres: Int[Tensor, "block centre"]
    contexts: Int[Tensor, "block context"]
    pairs: Float[Tensor, "block centre context"]
    """1 where centre and context form a pair, else 0."""


class WindowCutter:
    """Cuts subsampled text into blocks."""

    def __init__(self, *, window: int, share: int) -> None:
        self.window, self.share = window, share
        distance = (
            torch.arange(share + 2 * window)[None, :] - window - torch.arange(share)[:, None]
        ).abs()
        distance[distance == 0] = window + 1  # a word is not its own context
        self.distance = distance.to(torch.int16)

    def cut(
        self, ids: np.ndarray, sentences: np.ndarray, *, generator: np.random.Generator
    ) -> Windows:
        """All windows of a piece of text, each with its own radius."""
        window, share = self.window, self.share
        num_blocks = -(-len(ids) // share)
        inner = F.pad(torch.from_numpy(ids.astype(np.int64)), (0, num_blocks * share - len(ids)))
        # Padding has sentence -1 as a centre and -2 as a context, so that it is never a pair.
        inside = F.pad(torch.from_numpy(sentences), (0, num_blocks * share - len(ids)), value=-1)
        around = F.pad(inside, (window, window), value=-2)
        around[around == -1] = -2
        radius = torch.from_numpy(
            generator.integers(1, window + 1, (num_blocks, share, 1), dtype=np.int16)
        )
        mask = (self.distance <= radius) & (
            inside.view(-1, share, 1) == around.unfold(0, share + 2 * window, share)[:, None, :]
        )
        contexts = F.pad(inner, (window, window)).unfold(0, share + 2 * window, share).contiguous()
        return Windows(inner.view(-1, share), contexts, mask.float())
