"""Three recurrent decoders: from a fixed vector, with Bahdanau's and with Luong's attention.

s is the decoder's top state, e the embedding of the previous word, h_j the encoder's state at
source word j, f the recurrent cell, a the attention weights, c their weighted sum.

    fixed vector   s_t = f(s_t-1, e_t)                the source is seen through s_0 only
    Bahdanau       c_t = Σ_j a_tj h_j,  a_t = weights(score(s_t-1, h_j))      query: previous state
                   s_t = f(s_t-1, [e_t; c_t]),   out_t = tanh(W [s_t; c_t; e_t])
    Luong          s_t = f(s_t-1, [e_t; out_t-1])     (input feeding; without it, e_t alone)
                   c_t = Σ_j a_tj h_j,  a_t = weights(score(s_t, h_j))        query: current state
                   out_t = tanh(W [c_t; s_t])

Sutskever et al. 2014, Bahdanau et al. 2015, Luong et al. 2015. If a step does not depend on the
previous attention (fixed vector, Luong without input feeding), a known target is computed by one
call of torch's fused layers; otherwise by a loop over words. Bahdanau's maxout before the softmax
is a tanh here, as for Luong.

Tested against: the formulas written out in double precision on torch's own cells; step by step = at
once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from headwise.attention.kernels.scored import ScoredAttention
from headwise.attention.masks import Mask, padding
from headwise.blocks.dropout import drop
from headwise.blocks.recurrent_cells import RecurrentStack, State
from headwise.initialization import InitialWeights, initial_linear, xavier


@dataclass(frozen=True)
class Memory:
    """What the encoder hands over: a state for every source word, and each layer's last state."""

    states: Float[Tensor, "pair source dim"]
    last: Sequence[State]
    real: Bool[Tensor, "pair source"] | None = None
    """None: no padding."""
    keys: Float[Tensor, "pair source mapped"] | None = None
    """The keys of the score, computed once for all target words."""

    @property
    def mask(self) -> Mask:
        return Mask() if self.real is None else padding(self.real)


@dataclass(frozen=True)
class WritingState:
    """What is carried from word to word."""

    layers: Sequence[State]
    fed: Float[Tensor, "pair dim"] | None = None
    """The last output, where it is fed to the next step."""
    time: int = 0

    def select(self, index: Int[Tensor, " chosen"]) -> "WritingState":
        layers = [tuple(part[index] for part in state) for state in self.layers]
        return replace(self, layers=layers, fed=None if self.fed is None else self.fed[index])


class SourceAttention(nn.Module):
    """Attention of one query to the source: one head, no projections but the score's own."""

    def __init__(self, kernel: ScoredAttention) -> None:
        super().__init__()
        self.kernel = kernel

    def map_keys(
        self, states: Float[Tensor, "pair source dim"]
    ) -> Float[Tensor, "pair source mapped"]:
        return self.kernel.map_keys(states[:, None])[:, 0]

    def forward(
        self, query: Float[Tensor, "pair query dim"], memory: Memory, *, time: int = 0
    ) -> tuple[Float[Tensor, "pair query dim"], Float[Tensor, "pair query source"]]:
        """The context of every query and its weights; the first query has position `time`."""
        position = torch.arange(time, time + query.shape[1], device=query.device)[None]
        keys = self.map_keys(memory.states) if memory.keys is None else memory.keys
        weights = self.kernel.weights(
            query[:, None],
            keys[:, None],
            memory.mask,
            training=self.training,
            position=position,
            mapped=True,
        )[:, 0]
        weights = weights.to(memory.states.dtype)
        return weights @ memory.states, weights


NextInput = Callable[[int, Float[Tensor, "pair dim"]], Float[Tensor, "pair dim"]]
"""The input at a position, given the output that predicts its token."""
Step = tuple[Float[Tensor, "pair dim"], WritingState, Float[Tensor, "pair source"] | None]
"""The output that predicts the next word, the state after it, and the attention weights."""


class RecurrentDecoder(nn.Module, ABC):
    """What the three share: a stack of recurrent layers, started from the encoder's last states."""

    attention: SourceAttention | None

    def __init__(
        self, layers: RecurrentStack, attention: SourceAttention | None, *, dropout_rate: float
    ) -> None:
        super().__init__()
        self.layers, self.attention, self.dropout_rate = layers, attention, dropout_rate

    def prepare(self, memory: Memory) -> Memory:
        """Add what would otherwise be computed again in every step."""
        return (
            memory
            if self.attention is None
            else replace(memory, keys=self.attention.map_keys(memory.states))
        )

    def start(self, memory: Memory) -> WritingState:
        return WritingState(memory.last)

    @abstractmethod
    def step(self, x: Float[Tensor, "pair dim"], state: WritingState, memory: Memory) -> Step:
        """One more word, fed to every pair."""

    def forward(
        self, x: Float[Tensor, "pair target dim"], memory: Memory
    ) -> tuple[Float[Tensor, "pair target dim"], Float[Tensor, "pair target source"] | None]:
        """All outputs of a known target, and their attention weights."""
        memory = self.prepare(memory)
        state, outputs, looked = self.start(memory), [], []
        for word in x.unbind(1):
            output, state, weights = self.step(word, state, memory)
            outputs.append(output)
            looked.append(weights)
        maps = [weights for weights in looked if weights is not None]
        return torch.stack(outputs, 1), torch.stack(maps, 1) if maps else None

    def write(
        self, first: Float[Tensor, "pair dim"], memory: Memory, read: NextInput, *, length: int
    ) -> Float[Tensor, "pair target dim"]:
        """All outputs, where each input but `first` is found from the output before it."""
        memory = self.prepare(memory)
        state, x = self.start(memory), first
        outputs: list[Tensor] = []
        for time in range(length):
            if time:
                x = read(time, outputs[-1])
            output, state, _ = self.step(x, state, memory)
            outputs.append(output)
        return torch.stack(outputs, 1)

    def _drop(self, x: Tensor) -> Tensor:
        return drop(x, self.dropout_rate, training=self.training)


class FixedVectorDecoder(RecurrentDecoder):
    """No attention: one vector for the whole sentence."""

    def __init__(self, layers: RecurrentStack, *, dropout_rate: float) -> None:
        super().__init__(layers, None, dropout_rate=dropout_rate)

    def step(self, x: Float[Tensor, "pair dim"], state: WritingState, memory: Memory) -> Step:
        output, layers = self.layers.step(x, state.layers)
        return self._drop(output), WritingState(layers, time=state.time + 1), None

    def forward(self, x: Float[Tensor, "pair target dim"], memory: Memory) -> tuple[Tensor, None]:
        outputs, _ = self.layers(x, memory.last)
        return self._drop(outputs), None


class BahdanauDecoder(RecurrentDecoder):
    """The previous state is the query; the context is an input of the new state."""

    attention: SourceAttention

    def __init__(
        self, layers: RecurrentStack, attention: SourceAttention, *, dim: int, dropout_rate: float
    ) -> None:
        super().__init__(layers, attention, dropout_rate=dropout_rate)
        self.widen = nn.Linear(3 * dim, dim)

    def initial_weights(self) -> InitialWeights:
        return initial_linear(self.widen, xavier())

    def step(self, x: Float[Tensor, "pair dim"], state: WritingState, memory: Memory) -> Step:
        before = state.layers[-1][0]
        context, weights = self.attention(before[:, None], memory, time=state.time)
        found = context[:, 0]
        top, layers = self.layers.step(torch.cat([x, found], -1), state.layers)
        output = self.widen(torch.cat([top, found, x], -1)).tanh()
        return self._drop(output), WritingState(layers, time=state.time + 1), weights[:, 0]


class LuongDecoder(RecurrentDecoder):
    """The new state is the query; context and state make the attentional vector."""

    attention: SourceAttention

    def __init__(
        self,
        layers: RecurrentStack,
        attention: SourceAttention,
        *,
        dim: int,
        input_feeding: bool,
        dropout_rate: float,
    ) -> None:
        super().__init__(layers, attention, dropout_rate=dropout_rate)
        self.input_feeding = input_feeding
        self.widen = nn.Linear(2 * dim, dim)

    def initial_weights(self) -> InitialWeights:
        return initial_linear(self.widen, xavier())

    def start(self, memory: Memory) -> WritingState:
        top = memory.last[-1][0]
        return WritingState(memory.last, torch.zeros_like(top) if self.input_feeding else None)

    def step(self, x: Float[Tensor, "pair dim"], state: WritingState, memory: Memory) -> Step:
        given = x if state.fed is None else torch.cat([x, state.fed], -1)
        top, layers = self.layers.step(given, state.layers)
        output, weights = self._look(top[:, None], memory, time=state.time)
        after = WritingState(layers, output[:, 0] if self.input_feeding else None, state.time + 1)
        return output[:, 0], after, weights[:, 0]

    def forward(
        self, x: Float[Tensor, "pair target dim"], memory: Memory
    ) -> tuple[Tensor, Tensor | None]:
        if self.input_feeding:
            return super().forward(x, memory)
        states, _ = self.layers(x, memory.last)
        return self._look(states, memory, time=0)

    def _look(self, states: Tensor, memory: Memory, *, time: int) -> tuple[Tensor, Tensor]:
        context, weights = self.attention(states, memory, time=time)
        return self._drop(self.widen(torch.cat([context, states], -1)).tanh()), weights
