"""Transitions of a linear-chain CRF: how well one token follows another, from two small tables.

A parallel decoder scores the tokens of each position by itself, so that two neighbouring positions
may write the same word of a translation, or halves of two translations. A CRF adds a score for each
pair of neighbouring tokens. A full table of V × V scores does not fit; it is the product of two
tables of rank r:

    static     s(a, b)    = left[a] · right[b]
    dynamic    s_t(a, b)  = left[a] · (I + M_t) right[b],      M_t = W₂ relu(W₁ [h_t; h_{t+1}])

The matrix M_t is predicted from the decoder's hidden states h at the two positions. W₂ starts at
zero, so dynamic transitions start as the static ones. (The paper has M_t alone; I + M_t learns from
the first step on without a large W₂.) Only scores between the candidates of neighbouring positions
are ever computed: k × k for each pair of positions.

Sun et al. 2019, *Fast Structured Decoding for Sequence Models*, rank 32 and 64 candidates.
Tested against: the scores of all pairs of tokens, one by one; the loss that is built on them is
`training/parallel/crf.py`, the search `decoding/parallel/crf.py`.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.initialization import (
    InitialWeights,
    initial_linear,
    normal_by_width,
    xavier,
    zeros,
)

RANK = 32


class LowRankTransitions(nn.Module):
    """The same scores at every position: left[a] · right[b]."""

    def __init__(self, vocabulary_size: int, *, rank: int = RANK) -> None:
        super().__init__()
        self.left = nn.Parameter(torch.empty(vocabulary_size, rank))
        self.right = nn.Parameter(torch.empty(vocabulary_size, rank))

    def initial_weights(self) -> InitialWeights:
        yield self.left, normal_by_width
        yield self.right, normal_by_width

    def forward(
        self,
        candidates: Int[Tensor, "pair position candidate"],
        hidden: Float[Tensor, "pair position dim"] | None = None,
    ) -> Float[Tensor, "pair position-1 candidate candidate"]:
        """Entry [p, t, i, j]: candidate j of position t + 1 after candidate i of position t.

        `hidden` makes no difference here; it is taken so that both kinds are called alike.
        """
        before, after = self.factors(candidates)
        return before @ after.transpose(-1, -2)

    def factors(
        self, candidates: Int[Tensor, "pair position candidate"]
    ) -> tuple[
        Float[Tensor, "pair position-1 candidate rank"],
        Float[Tensor, "pair position-1 candidate rank"],
    ]:
        """The vectors of the tokens before and after each pair of neighbouring positions."""
        # left[candidates] is the same, but adds up the gradients of each token one by one: the
        # few tokens that are candidates nearly everywhere took 45 ms (H200, 32,768 positions).
        before = F.embedding(candidates[:, :-1], self.left)
        return before, F.embedding(candidates[:, 1:], self.right)


class DynamicTransitions(nn.Module):
    """Scores that depend on what the decoder computed at the two positions."""

    def __init__(self, vocabulary_size: int, *, dim: int, rank: int = RANK) -> None:
        super().__init__()
        self.static = LowRankTransitions(vocabulary_size, rank=rank)
        self.hidden = nn.Linear(2 * dim, dim)
        self.matrix = nn.Linear(dim, rank * rank)

    def initial_weights(self) -> InitialWeights:
        yield from initial_linear(self.hidden, xavier())
        yield from initial_linear(self.matrix, zeros)

    def forward(
        self,
        candidates: Int[Tensor, "pair position candidate"],
        hidden: Float[Tensor, "pair position dim"],
    ) -> Float[Tensor, "pair position-1 candidate candidate"]:
        """As `LowRankTransitions.forward`; `hidden` are the decoder's last states."""
        before, after = self.static.factors(candidates)
        neighbours = torch.cat([hidden[:, :-1], hidden[:, 1:]], dim=-1)
        change = self.matrix(self.hidden(neighbours).relu()).unflatten(-1, (before.shape[-1], -1))
        return (before + before @ change) @ after.transpose(-1, -2)
