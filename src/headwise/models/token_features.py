"""Features added to a word's own vector: its letters, the pair with the word before, its sentence.

    letters   √(dim/n) · Σ endings[feature]      n hashed features of a word
                                                 (text/word_affixes.py, text/character_ngrams.py)
    pairs     √dim · together[(a · previous + b · word) mod rows]
    halves    one vector for the first sentence of a pair, another for the second

Why pairs: *not good* means something that neither word means. A bag of words cannot express it; a
vector for each pair of neighbouring words can. Pairs are hashed, so no list of them is needed, and
two pairs may share a vector (Weinberger et al. 2009). All vectors of letters and pairs start at
zero, so features that never occurred in training add nothing. fastText is the `word` encoder with
both (Joulin et al. 2017, Bojanowski et al. 2017).
Tested against: the sums written out; packed rows = sentences one by one.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.initialization import InitialWeights, normal_by_width, zeros
from headwise.text.tokenizer import BOS

_PREVIOUS, _OWN = 1_000_003, 7_919
"""Primes, so that neighbours in the vocabulary do not become neighbours in the table."""


class LetterEmbedding(nn.Module):
    """The sum of the vectors of a word's letter features, left out for some words in training."""

    def __init__(self, num_rows: int, dim: int, word_rate: float = 0.0) -> None:
        super().__init__()
        self.endings = nn.Embedding(num_rows + 1, dim)
        self.word_rate = word_rate

    def initial_weights(self) -> InitialWeights:
        """Zeros: a feature that never occurs in training adds nothing."""
        return [(self.endings.weight, zeros)]

    def forward(self, affixes: Int[Tensor, "row time affix"]) -> Float[Tensor, "row time dim"]:
        if self.training and self.word_rate > 0:
            affixes = (
                affixes
                * (torch.rand(affixes.shape[:2], device=affixes.device) >= self.word_rate)[
                    ..., None
                ]
            )
        found = self.endings(affixes) * (affixes != 0)[..., None]
        return found.sum(2) * math.sqrt(self.endings.embedding_dim / affixes.shape[2])


class PairEmbedding(nn.Module):
    """A vector for each word and the one before it in the same sentence."""

    def __init__(self, num_rows: int, dim: int) -> None:
        super().__init__()
        self.together = nn.Embedding(num_rows, dim)

    def initial_weights(self) -> InitialWeights:
        """Zeros: a pair that never occurs in training adds nothing."""
        return [(self.together.weight, zeros)]

    def forward(
        self, tokens: Int[Tensor, "row time"], position: Int[Tensor, "row time"]
    ) -> Float[Tensor, "row time dim"]:
        # The word before the first one is 0, which is no word.
        previous = torch.where(position > 0, torch.roll(tokens, 1, 1), 0)
        rows = (previous * _PREVIOUS + tokens * _OWN) % self.together.num_embeddings
        return self.together(rows) * math.sqrt(self.together.embedding_dim)


class HalfEmbedding(nn.Module):
    """One vector for the first sentence of a pair, another for the second.

    The second begins at an <s> that is not the first token.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.halves = nn.Embedding(2, dim)

    def initial_weights(self) -> InitialWeights:
        return [(self.halves.weight, normal_by_width)]

    def forward(
        self, tokens: Int[Tensor, "row time"], position: Int[Tensor, "row time"]
    ) -> Float[Tensor, "row time dim"]:
        inner = ((tokens == BOS) & (position > 0)).long().cumsum(1)
        start = torch.arange(tokens.shape[1], device=tokens.device) - position
        return self.halves((inner - inner.gather(1, start)).clamp(0, 1))
