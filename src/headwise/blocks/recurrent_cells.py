"""Recurrent layers (RNN, LSTM, GRU): a state is carried from word to word, and each word changes
it.

    RNN    h' = tanh(W x + b + U h + d)          Elman 1990
    LSTM   i, f, o = σ(W x + b + U h + d) each with its own rows;   g = tanh(W x + b + U h + d)
           c' = f ⊙ c + i ⊙ g         h' = o ⊙ tanh(c')          Hochreiter & Schmidhuber 1997
    GRU    r, z = σ(W x + b + U h + d);   n = tanh(W x + b + r ⊙ (U h + d))
           h' = (1 - z) ⊙ n + z ⊙ h          Cho et al. 2014

The plain RNN overwrites its state. The gates of LSTM and GRU let a cell keep parts of its state
(c, h) over many words, because new information is added to it instead of multiplying it.

W x of all times is one product; only U h depends on the word before. This file has the equations
(`written_out=True`, and `step` for one word). The fast path is torch's fused loop over the same
weights, whose rows are ordered i f g o (LSTM) and r z n (GRU). A sentence of a padded batch ends at
its length: later outputs are zeros, and its state is the one after its last word.

Tested against: torch's nn.RNN, nn.LSTM and nn.GRU with copied weights, outputs and gradients,
several layers, both directions, and padded = one by one.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from headwise.blocks.dropout import drop
from headwise.initialization import InitialWeights, initial_recurrent

CellKind = Literal["rnn", "lstm", "gru"]
State = tuple[Tensor, ...]
"""(h,) of RNN and GRU, (h, c) of LSTM; each [batch, dim]."""
Cell = Callable[[Tensor, State, Tensor, Tensor], State]


def rnn_cell(
    given: Float[Tensor, "batch gates"], state: State, weight: Tensor, bias: Tensor
) -> State:
    """`given` is W x + b; U and d follow."""
    (h,) = state
    return (torch.tanh(given + nn.functional.linear(h, weight, bias)),)


def lstm_cell(
    given: Float[Tensor, "batch gates"], state: State, weight: Tensor, bias: Tensor
) -> State:
    h, c = state
    i, f, g, o = (given + nn.functional.linear(h, weight, bias)).chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def gru_cell(
    given: Float[Tensor, "batch gates"], state: State, weight: Tensor, bias: Tensor
) -> State:
    (h,) = state
    given_r, given_z, given_n = given.chunk(3, dim=-1)
    held_r, held_z, held_n = nn.functional.linear(h, weight, bias).chunk(3, dim=-1)
    r, z = torch.sigmoid(given_r + held_r), torch.sigmoid(given_z + held_z)
    n = torch.tanh(given_n + r * held_n)
    return ((1 - z) * n + z * h,)


CELLS: dict[CellKind, Cell] = {"rnn": rnn_cell, "lstm": lstm_cell, "gru": gru_cell}
FUSED: dict[CellKind, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}

LOOPS: dict[CellKind, Callable[..., Any]] = {
    "rnn": torch.rnn_tanh,
    "lstm": torch.lstm,
    "gru": torch.gru,
}


class RecurrentLayer(nn.Module):
    """One layer, read from left to right; `weights` is torch's own layer, so that its weights have
    the layout of cuDNN."""

    def __init__(self, kind: CellKind, input_dim: int, dim: int) -> None:
        super().__init__()
        self.kind, self.dim = kind, dim
        self.weights = FUSED[kind](input_dim, dim, batch_first=True)

    def initial_weights(self) -> InitialWeights:
        return initial_recurrent(self.weights)

    def start(self, num_rows: int) -> State:
        """The initial state: zeros."""
        like = self.parts()[0]
        return tuple(
            like.new_zeros(num_rows, self.dim) for _ in range(2 if self.kind == "lstm" else 1)
        )

    def forward(
        self,
        x: Float[Tensor, "batch time input_dim"],
        state: State | None = None,
        *,
        lengths: Int[Tensor, " batch"] | None = None,
        recurrent_weight: Tensor | None = None,
        written_out: bool = False,
    ) -> tuple[Float[Tensor, "batch time dim"], State]:
        """Outputs at every word, and the state after the last; `recurrent_weight` replaces U (with
        some of it dropped)."""
        state = self.start(x.shape[0]) if state is None else state
        weights = self.parts(recurrent_weight)
        if written_out:
            return self._write_out(x, state, lengths, weights)
        held: Tensor | State = tuple(part[None].to(x.dtype) for part in state)
        if self.kind != "lstm":
            held = held[0]
        run = LOOPS[self.kind]
        form = {
            "has_biases": True,
            "num_layers": 1,
            "dropout": 0.0,
            "train": self.training,
            "bidirectional": False,
        }
        if lengths is None:
            outputs, *after = run(x, held, weights, batch_first=True, **form)
            return outputs, tuple(part[0] for part in after)
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        order, back = packed.sorted_indices, packed.unsorted_indices
        held = tuple(part[:, order] for part in held) if isinstance(held, tuple) else held[:, order]
        data, *after = run(packed.data, packed.batch_sizes, held, weights, **form)
        outputs, _ = pad_packed_sequence(
            packed._replace(data=data), batch_first=True, total_length=x.shape[1]
        )
        return outputs, tuple(part[0, back] for part in after)

    def step(
        self,
        x: Float[Tensor, "batch input_dim"],
        state: State,
        recurrent_weight: Tensor | None = None,
    ) -> State:
        """One more word by the equations; the first part of the state is the output."""
        input_weight, weight, input_bias, bias = self.parts(recurrent_weight)
        return CELLS[self.kind](
            nn.functional.linear(x, input_weight, input_bias), state, weight, bias
        )

    def parts(self, recurrent_weight: Tensor | None = None) -> list[Tensor]:
        """W, U, b, d in torch's order."""
        held = [
            getattr(self.weights, f"{name}_l0")
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ]
        return held if recurrent_weight is None else [held[0], recurrent_weight, *held[2:]]

    def _write_out(
        self, x: Tensor, state: State, lengths: Tensor | None, weights: Sequence[Tensor]
    ) -> tuple[Tensor, State]:
        input_weight, weight, input_bias, bias = weights
        given = nn.functional.linear(x, input_weight, input_bias)
        outputs = []
        for time, part in enumerate(given.unbind(dim=1)):
            after = CELLS[self.kind](part, state, weight, bias)
            if lengths is None:
                state = after
                outputs.append(state[0])
            else:
                goes_on = (time < lengths)[:, None]
                state = tuple(
                    torch.where(goes_on, new, old) for new, old in zip(after, state, strict=True)
                )
                outputs.append(state[0] * goes_on)
        return torch.stack(outputs, dim=1), state


class RecurrentStack(nn.Module):
    """A stack of layers; dropout between layers, never from word to word (Zaremba et al. 2014).

    `locked`: the same features are dropped at every word. `recurrent_rate`: dropout of the weights
    U, drawn once for the whole sentence.
    """

    def __init__(
        self,
        kind: CellKind,
        input_dim: int,
        dims: Sequence[int],
        *,
        dropout_rate: float = 0.0,
        locked: bool = False,
        recurrent_rate: float = 0.0,
        reverse: bool = False,
    ) -> None:
        super().__init__()
        self.reverse, self.dropout_rate, self.locked, self.recurrent_rate = (
            reverse,
            dropout_rate,
            locked,
            recurrent_rate,
        )
        sizes = [input_dim, *dims]
        self.layers: Sequence[RecurrentLayer] = nn.ModuleList(  # type: ignore[assignment]
            RecurrentLayer(kind, before, dim) for before, dim in zip(sizes, dims, strict=False)
        )

    def start(self, num_rows: int) -> list[State]:
        return [layer.start(num_rows) for layer in self.layers]

    def forward(
        self,
        x: Float[Tensor, "batch time input_dim"],
        states: Sequence[State] | None = None,
        *,
        lengths: Int[Tensor, " batch"] | None = None,
        written_out: bool = False,
    ) -> tuple[Float[Tensor, "batch time dim"], list[State]]:
        """The outputs of the top layer and the last state of every layer; `reverse` stacks read
        each sentence from its end."""
        if self.reverse:
            x = turn_around(x, lengths)
        after = []
        for number, layer in enumerate(self.layers):
            if number > 0:
                x = drop(
                    x, self.dropout_rate, training=self.training, shared=1 if self.locked else None
                )
            x, state = layer(
                x,
                None if states is None else states[number],
                lengths=lengths,
                recurrent_weight=self._some_of(layer),
                written_out=written_out,
            )
            after.append(state)
        return (turn_around(x, lengths) if self.reverse else x), after

    def _some_of(self, layer: RecurrentLayer) -> Tensor | None:
        if not self.training or self.recurrent_rate == 0:
            return None
        return drop(layer.parts()[1], self.recurrent_rate, training=True)

    def step(
        self, x: Float[Tensor, "batch input_dim"], states: Sequence[State]
    ) -> tuple[Tensor, list[State]]:
        """One more word through all layers."""
        after = []
        for number, (layer, state) in enumerate(zip(self.layers, states, strict=True)):
            x = drop(x, self.dropout_rate, training=self.training) if number > 0 else x
            after.append(layer.step(x, state))
            x = after[-1][0]
        return x, after


def turn_around(
    x: Float[Tensor, "batch time dim"], lengths: Int[Tensor, " batch"] | None
) -> Float[Tensor, "batch time dim"]:
    """Each sentence reversed; padding stays at the end. Applied twice, it changes nothing."""
    if lengths is None:
        return x.flip(1)
    time = torch.arange(x.shape[1], device=x.device)
    mirrored = lengths[:, None].to(x.device) - 1 - time
    return x.gather(1, torch.where(mirrored >= 0, mirrored, time)[:, :, None].expand_as(x))
