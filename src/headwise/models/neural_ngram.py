"""The neural n-gram language model: one hidden layer over the vectors of the n - 1 words before.

Words with similar vectors predict alike, so what was learned from "the dog sleeps" also holds for
"the cat sleeps". Counting n-grams cannot do that.

    x = [C(w_{t-1}); …; C(w_{t-n+1})]            C: the embedding, w_t: the word at position t
    y = b + U tanh(d + H x) + W x                P(w_t | …) = softmax(y)

C, H, U, b, d are learned together; the direct connections W are optional. [U W] is one matrix over
[tanh(d + H x); x], so that the loss sees hidden states and an output matrix, as with any other
model. Positions before the first word hold the beginning-of-sentence token.

Bengio et al. 2003.
Tested against: the formula in a hand-worked case, its gradient by differences, and packed rows =
sentences one by one.
"""

from pathlib import Path
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from headwise.blocks.dropout import DropRate, drop
from headwise.initialization import InitialWeights, initial_linear, normal_by_width, xavier
from headwise.settings import Settings
from headwise.settings.part_names import PartNames
from headwise.text.tokenizer import BOS


class NeuralNgramSettings(Settings):
    """Bengio's neural n-gram."""

    kind: Literal["neural_ngram"] = "neural_ngram"
    order: int = Field(default=5, ge=2, le=100)
    """Words in an n-gram, the predicted one included."""
    dim: int = Field(default=60, ge=1, le=65536)
    """Width of a word's vector."""
    hidden: int = Field(default=100, ge=1, le=65536)
    """Width of the tanh layer."""
    direct: bool = False
    """Direct connections from the vectors to the output."""
    dropout: DropRate = 0.0
    """Dropout before the output layer."""
    start_from: Path | None = None
    """A language model (its bundle or run) whose tokenizer and weights the training begins with."""


class NeuralNgram(nn.Module):
    """Parts by the formula: `table` is C, `hidden` H and d, `output` [U W] and b."""

    part_names: ClassVar[PartNames] = {
        "table": ("embeddings", "词嵌入"),
        "hidden": ("hidden layer", "隐藏层"),
        "output": ("output", "输出层"),
    }

    def __init__(self, settings: NeuralNgramSettings, *, size: int) -> None:
        super().__init__()
        self.num_before = settings.order - 1
        self.direct, self.dropout_rate = settings.direct, settings.dropout
        width = self.num_before * settings.dim
        self.table = nn.Embedding(size, settings.dim)
        self.hidden = nn.Linear(width, settings.hidden)
        self.output = nn.Linear(settings.hidden + (width if settings.direct else 0), size)

    def initial_weights(self) -> InitialWeights:
        yield self.table.weight, normal_by_width
        yield from initial_linear(self.hidden, xavier())
        yield from initial_linear(self.output, normal_by_width)

    def forward(
        self,
        tokens: Int[Tensor, "row time"],
        *,
        segment: Int[Tensor, "row time"] | None = None,
        position: Int[Tensor, "row time"] | None = None,
    ) -> Float[Tensor, "row time dim"]:
        """Hidden states that predict the token after each; positions restart with each sentence."""
        if position is None:
            position = torch.arange(tokens.shape[1], device=tokens.device).expand(tokens.shape)
        before = torch.stack(
            [_earlier(tokens, position, distance) for distance in range(self.num_before)], dim=-1
        )
        return self.combine(before)

    def combine(self, before: Int[Tensor, "*batch before"]) -> Float[Tensor, "*batch dim"]:
        """What the output layer reads, from the words before, the nearest first."""
        x = self.table(before).flatten(-2)
        hidden = torch.tanh(self.hidden(x))
        joined = torch.cat([hidden, x], dim=-1) if self.direct else hidden
        return drop(joined, self.dropout_rate, training=self.training)


def _earlier(tokens: Tensor, position: Tensor, distance: int) -> Tensor:
    """The token `distance` positions before each, or <s> if its sentence had not begun."""
    if distance == 0:
        return tokens
    shifted = nn.functional.pad(tokens, (distance, 0), value=BOS)[:, : tokens.shape[1]]
    return torch.where(position >= distance, shifted, BOS)
