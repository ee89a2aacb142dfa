"""The recurrent language model: a hidden state is carried from word to word.

    hₜ = cell(C(wₜ), hₜ₋₁)  (several layers)        P(wₜ₊₁ | w₁ … wₜ) = softmax(U hₜ + b)

C is the embedding. The text is one stream, cut into rows that are read side by side. Gradients go
back `length` words and stop, but the state is carried on (truncated back-propagation through time).

Regularisation: dropout acts between layers and not from step to step (Zaremba et al. 2014). With
`locked` a row keeps its dropout mask from word to word (Gal & Ghahramani 2016). `recurrent` drops
weights of the state's own matrix, and penalties act on large and on quickly changing states
(AWD-LSTM, Merity et al. 2018). `tied`: the output reuses C (Press & Wolf 2017; Inan et al. 2017),
and the last layer then has its width.

Word vectors are initialised small, as an output matrix should be, and are therefore multiplied by
√dim; without that an LSTM learns several times more slowly at first (docs/experiments).

Tested against: torch's layers (blocks/recurrent_cells.py), windows with a carried state = the whole
text, step = whole.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from headwise.blocks.dropout import DropRate, drop
from headwise.blocks.recurrent_cells import CellKind, RecurrentStack, State
from headwise.errors import SettingsError
from headwise.initialization import InitialWeights, initial_linear, normal_by_width
from headwise.settings import Settings
from headwise.settings.part_names import PartNames


class RecurrentDropout(Settings):
    """Dropout rates."""

    word: DropRate = 0.0
    """Of whole words of the vocabulary, drawn anew for each batch."""
    embedding: DropRate = 0.0
    """Of word vectors."""
    layer: DropRate = 0.0
    """Between layers."""
    output: DropRate = 0.0
    """Of what the output layer reads."""
    recurrent: DropRate = 0.0
    """Of the weights from state to state."""
    locked: bool = False
    """Use one mask for all words of a row instead of a new one for each."""


class RecurrentPenalty(Settings):
    """Penalties on states, averaged over numbers and words; AWD-LSTM has 2 and 1."""

    size: float = Field(default=0.0, ge=0, le=1000)
    """Times the square of what the output layer reads."""
    change: float = Field(default=0.0, ge=0, le=1000)
    """Times the mean square of its change from word to word; needs `dropout.locked`."""

    def of(
        self, hidden: Float[Tensor, "row time dim"], real: Bool[Tensor, "row time"]
    ) -> Float[Tensor, ""]:
        wide = hidden.float()
        both = real[:, 1:] & real[:, :-1]
        size = (wide.square().mean(-1) * real).sum() / real.sum().clamp(min=1)
        change = (wide.diff(dim=1).square().mean(-1) * both).sum() / both.sum().clamp(min=1)
        return self.size * size + self.change * change


class RecurrentSettings(Settings):
    """An RNN, LSTM or GRU language model."""

    kind: Literal["recurrent"] = "recurrent"
    cell: CellKind = "lstm"
    """`rnn`, `lstm` or `gru`."""
    dim: int = Field(default=200, ge=1, le=65536)
    """Width of a word's vector."""
    hidden: int = Field(default=200, ge=1, le=65536)
    """Width of a layer; the last one has that of the vectors if they are tied."""
    layers: int = Field(default=2, ge=1, le=64)
    dropout: RecurrentDropout = RecurrentDropout()
    penalty: RecurrentPenalty = RecurrentPenalty()
    tied: bool = False
    """Embedding and output share one matrix."""
    start_from: Path | None = None
    """A language model (its bundle or run) whose tokenizer and weights the training begins with."""

    @model_validator(mode="after")
    def _counts_no_dropout(self) -> "RecurrentSettings":
        if self.penalty.change > 0 and self.dropout.output > 0 and not self.dropout.locked:
            raise SettingsError(
                "model.penalty.change counts how states change from word to word, and dropout that "
                "is drawn anew at every word is a change; set model.dropout.locked=true, or "
                "model.penalty.change=0",
                "model.penalty.change 计算状态逐词的变化，而逐词重抽的随机失活本身就是变化；"
                "请设 model.dropout.locked=true，或 model.penalty.change=0",
            )
        return self


class RecurrentLanguageModel(nn.Module):
    part_names: ClassVar[PartNames] = {
        "table": ("embeddings", "词嵌入"),
        "recurrent": ("recurrent layers", "循环层"),
        "output": ("output", "输出层"),
    }

    def __init__(self, settings: RecurrentSettings, *, size: int) -> None:
        super().__init__()
        rates = settings.dropout
        self.rates, self.scale = rates, settings.dim**0.5
        dims = [settings.hidden] * (settings.layers - 1) + [
            settings.dim if settings.tied else settings.hidden
        ]
        self.table = nn.Embedding(size, settings.dim)
        self.recurrent = RecurrentStack(
            settings.cell,
            settings.dim,
            dims,
            dropout_rate=rates.layer,
            locked=rates.locked,
            recurrent_rate=rates.recurrent,
        )
        self.output = nn.Linear(dims[-1], size)
        if settings.tied:
            self.output.weight = self.table.weight

    def initial_weights(self) -> InitialWeights:
        yield self.table.weight, normal_by_width
        yield from initial_linear(self.output, normal_by_width)

    def start(self, num_rows: int) -> list[State]:
        return self.recurrent.start(num_rows)

    def forward(
        self, tokens: Int[Tensor, "row time"], states: Sequence[State] | None = None
    ) -> tuple[Float[Tensor, "row time dim"], list[State]]:
        """Hidden states that predict the token after each, and the states to continue with."""
        x = drop(
            self._embed(tokens), self.rates.embedding, training=self.training, shared=self._shared
        )
        hidden, after = self.recurrent(x, states)
        return drop(hidden, self.rates.output, training=self.training, shared=self._shared), after

    def step(
        self, tokens: Int[Tensor, " row"], states: Sequence[State]
    ) -> tuple[Tensor, list[State]]:
        """Read one more token of every row; the hidden states that predict the next."""
        return self.recurrent.step(self.table(tokens) * self.scale, states)

    @property
    def _shared(self) -> int | None:
        return 1 if self.rates.locked else None

    def _embed(self, tokens: Tensor) -> Tensor:
        if not self.training or self.rates.word == 0:
            return self.table(tokens) * self.scale
        kept = drop(
            self.table.weight.new_ones(self.table.num_embeddings, 1), self.rates.word, training=True
        )
        return self.table(tokens) * kept[tokens] * self.scale


class Carrying(nn.Module):
    """A recurrent model and the states of its rows, saved with the run for resuming."""

    def __init__(self, model: RecurrentLanguageModel, num_rows: int) -> None:
        super().__init__()
        self.model = model
        for number, state in enumerate(model.start(num_rows)):
            for part, values in enumerate(state):
                self.register_buffer(f"state_{number}_{part}", values)

    def forward(
        self, tokens: Int[Tensor, "row time"], fresh: Bool[Tensor, " row"]
    ) -> Float[Tensor, "row time dim"]:
        """Continue reading; `fresh` rows begin anew. Gradients stop at the carried state."""
        kept = ~fresh[:, None]
        states = [
            tuple(part.clone() * kept for part in self._state(number))
            for number in range(self._num_layers)
        ]
        hidden, after = self.model(tokens, states)
        with torch.no_grad():
            for number, state in enumerate(after):
                for place, value in zip(self._state(number), state, strict=True):
                    place.copy_(value)
        return hidden

    @property
    def _num_layers(self) -> int:
        return len(self.model.recurrent.layers)

    def _state(self, number: int) -> State:
        parts = 2 if self.model.recurrent.layers[number].kind == "lstm" else 1
        return tuple(getattr(self, f"state_{number}_{part}") for part in range(parts))
