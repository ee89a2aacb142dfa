"""Draft heads: extra outputs of a decoder that guess the tokens after the next one.

The decoder's last state h_t gives the next token y_{t+1}. Head j guesses the j-th token after it,
from the same state and the embedding e of y_{t+1}, which is known when a draft is made:

    g_j    = h_t + W_j relu(V_j [h_t; e(y_{t+1})] + b_j)          j = 1 … count
    guess  = argmax over y_{t+1+j} of softmax(g_j · output_weightᵀ + bias)

All heads share the output layer of the model. W_j starts at zero, so that a head begins as the
model's own output. The guesses are drafts that the model verifies (decoding/drafting/); the model
itself predicts as without heads.

Stern et al. 2018 (blockwise parallel decoding: one residual feed-forward layer a head); Cai et al.
2024 (Medusa: heads added to a finished model); Ankner et al. 2024 (Hydra: heads read tokens that
were just written).

Tested against: the formula head by head; heads trained on sequences that count.
"""

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from headwise.initialization import InitialWeights, initial_linear, xavier, zeros
from headwise.settings import Settings


class DraftHeadSettings(Settings):
    """Heads that guess the tokens after the next one, for `decoding.drafter.kind=heads`."""

    count: int = Field(default=0, ge=0, le=16)
    """Number of heads; 0: none. Head j guesses the j-th token after the next one."""
    hidden: int | None = Field(default=None, ge=1, le=65536)
    """Width of a head's hidden layer; null: that of the model."""
    weight: float = Field(default=0.2, gt=0, le=100)
    """What the heads' mean loss counts in training, beside the model's own loss."""


class DraftHeads(nn.Module):
    """All heads of a model, computed together."""

    def __init__(self, settings: DraftHeadSettings, *, dim: int) -> None:
        super().__init__()
        hidden = dim if settings.hidden is None else settings.hidden
        self.count, self.weight = settings.count, settings.weight
        self.widen = nn.Linear(2 * dim, settings.count * hidden)
        self.narrowing = nn.Parameter(torch.empty(settings.count, hidden, dim))

    def initial_weights(self) -> InitialWeights:
        yield from initial_linear(self.widen, xavier(self.count))
        yield self.narrowing, zeros

    def forward(
        self,
        state: Float[Tensor, "token dim"],
        written: Float[Tensor, "token dim"],
        *,
        count: int | None = None,
    ) -> Float[Tensor, "head token dim"]:
        """States that predict the tokens after the one just written; `written` is its embedding.

        `count`: of so many heads, the first ones; None: of all.
        """
        hidden = torch.relu(self.widen(torch.cat([state, written], dim=-1)))
        by_head = hidden.unflatten(-1, (self.count, -1)).transpose(0, 1)[:count]
        narrowing = self.narrowing[:count]
        return torch.baddbmm(state.expand(len(narrowing), -1, -1), by_head, narrowing)
