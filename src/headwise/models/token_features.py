"""What is added to a word's own vector: what its letters tell, what it says together with the word before, in which sentence it stands.

    letters   √(dim/n) · Σ endings[feature]                n features of a word, hashed (text/word_affixes.py, text/character_ngrams.py)
    pairs     √dim · together[(a · previous + b · word) mod rows]
    halves    one vector for the first sentence of a pair, another for the second

*not good* says what neither word says, and a bag of words cannot know; a row for each pair of neighbours can. Pairs are hashed, so that
there is no list of them; two that meet in one row share it (Weinberger et al. 2009). All rows of letters and pairs start at zero: what was
never seen in training says nothing. fastText is the `word` rung with both (Joulin et al. 2017, Bojanowski et al. 2017).
Tested against: the sums written out; packed rows = sentences one by one.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.initialization import InitialWeights, normal_by_width, zeros
from headwise.text.tokenizer import BOS

_PREVIOUS, _OWN = 1_000_003, 7_919
"""Primes: neighbours in the vocabulary do not become neighbours in the table."""


class LetterEmbedding(nn.Module):
    """The sum of the vectors of a word's endings, beginnings and shape, or of its runs; a share of the words goes without while training."""

    def __init__(self, num_rows: int, dim: int, word_rate: float = 0.0) -> None:
        super().__init__()
        self.endings = nn.Embedding(num_rows + 1, dim)
        self.word_rate = word_rate

    def initial_weights(self) -> InitialWeights:
        """Zeros: an ending that training never shows says nothing."""
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
        """Zeros: a pair that training never shows says nothing."""
        return [(self.together.weight, zeros)]

    def forward(
        self, tokens: Int[Tensor, "row time"], position: Int[Tensor, "row time"]
    ) -> Float[Tensor, "row time dim"]:
        # Before the first word of a sentence stands 0, which is no word.
        previous = torch.where(position > 0, torch.roll(tokens, 1, 1), 0)
        rows = (previous * _PREVIOUS + tokens * _OWN) % self.together.num_embeddings
        return self.together(rows) * math.sqrt(self.together.embedding_dim)


class HalfEmbedding(nn.Module):
    """One vector for the first sentence of a pair, another for the second, which begins at an <s> that is not the first token."""

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
