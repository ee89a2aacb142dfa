"""Character encoder: word vectors from letters, by convolutions, a maximum, and highway layers.

    c_f = max over i of  relu(W_f · letters[i : i + width_f] + b_f)    one number for each filter f
    y   = g ⊙ relu(A y + a) + (1 - g) ⊙ y,     g = σ(G y + d)          a highway layer, twice
                                                                       (Srivastava et al. 2015)
    x   = P y + p                                                      to the width of the model

y starts as all c_f side by side. Filters of several widths recognise endings, beginnings and whole
short words. So a word that was not in training gets a vector from its letters, and no table of
words is needed. Gates begin nearly closed (d = -2), so that the highway layers first pass on their
input. Kim et al. 2016; Peters et al. 2018 (ELMo: 2,048 filters of 1 to 7 letters, 512 numbers).
Positions past the last letter are excluded from the maximum, so that padding changes nothing.

Tested against: the formulas in double precision, word by word in plain Python; longer padding = the
same vector.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.initialization import (
    InitialWeights,
    constant,
    initial_linear,
    normal_by_width,
    uniform_by_filter,
    xavier,
)
from headwise.settings.part_names import PartNames


class Highway(nn.Module):
    """A layer whose output is mixed with its input by a gate."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.change, self.gate = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def initial_weights(self) -> InitialWeights:
        """The gates begin nearly closed, so that the input passes nearly unchanged."""
        yield from initial_linear(self.change, xavier())
        yield self.gate.weight, xavier()
        yield self.gate.bias, constant(-2.0)

    def forward(self, x: Float[Tensor, "word dim"]) -> Float[Tensor, "word dim"]:
        gate = torch.sigmoid(self.gate(x))
        return gate * torch.relu(self.change(x)) + (1 - gate) * x


class CharacterEncoder(nn.Module):
    """`filters` has the number of filters for the widths 1, 2, 3 … letters."""

    part_names: ClassVar[PartNames] = {
        "table": ("embeddings of letters", "字母嵌入"),
        "filters": ("convolutions over letters", "字母上的卷积"),
        "highways": ("highway layers", "高速网络（highway）层"),
        "narrow": ("projection of words", "词向量投影"),
    }

    def __init__(
        self,
        num_signs: int,
        *,
        letter_dim: int,
        filters: Sequence[int],
        num_highways: int,
        dim: int,
    ) -> None:
        super().__init__()
        self.table = nn.Embedding(num_signs, letter_dim)
        self.filters = nn.ModuleList(
            nn.Conv1d(letter_dim, count, width) for width, count in enumerate(filters, start=1)
        )
        self.highways = nn.ModuleList(Highway(sum(filters)) for _ in range(num_highways))
        self.narrow = nn.Linear(sum(filters), dim)

    def initial_weights(self) -> InitialWeights:
        yield self.table.weight, normal_by_width
        for layer in self.filters:
            assert isinstance(layer, nn.Conv1d)
            yield from initial_linear(layer, uniform_by_filter)
        yield from initial_linear(self.narrow, xavier())

    def forward(self, letters: Int[Tensor, "word letter"]) -> Float[Tensor, "word dim"]:
        """A vector for each word; letters are numbers from 1, 0 is padding at the end."""
        given = letters != 0
        # √dim: vectors of letters start with deviation 1/√dim, and filters expect numbers of about
        # 1.
        x = self.table(letters) * self.table.embedding_dim**0.5 * given[..., None]
        # A word shorter than the widest filter still has one position for it.
        x = nn.functional.pad(x, (0, 0, 0, len(self.filters) - 1)).transpose(1, 2)
        lengths = given.sum(1, keepdim=True)
        found = []
        for width, filters in enumerate(self.filters, start=1):
            matches = filters(x)
            place = torch.arange(matches.shape[2], device=x.device)
            past = place > (lengths - width).clamp(min=0)
            found.append(matches.masked_fill(past[:, None], -torch.inf).amax(2))
        y = torch.relu(torch.cat(found, dim=1))
        for highway in self.highways:
            y = highway(y)
        return self.narrow(y)
