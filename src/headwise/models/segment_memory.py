"""Remembers what a Transformer has read, so that it attends beyond its segment (Transformer-XL).

A text is read in segments of equal length. Each layer l attends to the states that it read in the
segments before, as well as to its own segment:

    keys and values of layer l   from [ stop_gradient(mₗ) ; xₗ ]        queries from xₗ
    new memory                   mₗ ← the last `length` rows of [ mₗ ; xₗ ]

xₗ is the input of layer l. No gradient flows into the memory, so a step costs the same whatever
was read before. Each layer reaches `length` tokens further back, so n layers reach about n ·
`length` tokens. Positions must be distances: the memory has no place in the row of its own.

In training a token sees all of the memory and its own segment up to itself, between `length` and
`length` + segment − 1 tokens. A trained model shows each token the same number of tokens before it
(`evaluation_length`). Then a state depends on the text and not on where segments begin, so a text
can be scored in segments of any length and written token by token with the same numbers.

With `kind: nearest`, one layer also looks up the nearest of many tokens that no window reaches any
more: their keys and values stay in a ring (pair_ring.py, attention/nearest_attention.py).

Dai et al. 2019 (Transformer-XL), Wu et al. 2022 (Memorizing Transformers). Tested against: the
formula written out for one layer; one long sequence read at once; steps with a cache; a gradient
that must be zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from headwise.attention.nearest_attention import KeyValuePairs, Stored
from headwise.models.pair_ring import PairRing
from headwise.settings import Settings


class NoMemory(Settings):
    """Each window is read by itself."""

    kind: Literal["none"] = "none"


class CarriedMemory(Settings):
    """What a model keeps from segment to segment."""

    length: int = Field(default=150, ge=1, le=65536)
    """States that each layer keeps of the tokens before the segment, in training."""
    evaluation_length: int | None = Field(default=None, ge=1, le=65536)
    """Tokens before each that a layer attends to when the trained model scores or writes; null:
    `length`."""

    @property
    def reach(self) -> int:
        """How far a layer of the trained model looks back."""
        return self.length if self.evaluation_length is None else self.evaluation_length


class SegmentMemory(CarriedMemory):
    """States of the segments before are kept in every layer (Transformer-XL)."""

    kind: Literal["segments"] = "segments"


class NearestMemory(CarriedMemory):
    """The same, and one layer looks up the nearest of many more tokens (Memorizing Transformer)."""

    kind: Literal["nearest"] = "nearest"
    layer: int | None = Field(default=None, ge=1)
    """The layer that looks up, counted from 1; null: three quarters up, as the ninth of twelve."""
    size: int = Field(default=8192, ge=1, le=1 << 20)
    """Tokens whose keys and values are stored for each row, beyond those within `length`."""
    neighbours: int = Field(default=32, ge=1, le=4096)
    """Stored tokens that a head attends to."""

    def layer_of(self, num_layers: int) -> int:
        """The number of the layer that looks up, counted from 0."""
        return (-(-3 * num_layers // 4) if self.layer is None else self.layer) - 1


LanguageMemorySettings = Annotated[
    NoMemory | SegmentMemory | NearestMemory, Field(discriminator="kind")
]
NO_MEMORY = NoMemory()


@dataclass(frozen=True)
class Read:
    """What a segment leaves to be remembered."""

    states: Sequence[Float[Tensor, "row time dim"]]
    """What each layer has read."""
    pairs: KeyValuePairs | None = None
    """Keys and values of the layer that looks up, if there is one."""
    num_stored: int = 0
    """How many of them are kept beyond the states."""


@dataclass(frozen=True)
class Past:
    """Of every layer the states of tokens that were read before, the latest last."""

    states: Sequence[Float[Tensor, "row past dim"]]
    real: Bool[Tensor, "row past"]
    """False where nothing has been read yet."""
    stored: Stored | None = None
    """What may be looked up, of these tokens and of earlier ones; None: nothing."""

    @staticmethod
    def nothing(num_layers: int, num_rows: int, *, like: Float[Tensor, "any dim"]) -> "Past":
        empty = like.new_zeros(num_rows, 0, like.shape[-1])
        real = torch.ones(num_rows, 0, dtype=torch.bool, device=like.device)
        return Past([empty] * num_layers, real)

    def after(self, read: Read, *, keep: int) -> "Past":
        """The last `keep` states once another segment was read. No gradients go through them."""
        joined = zip(self.states, read.states, strict=True)
        states = [torch.cat([old, new.detach().to(old.dtype)], 1)[:, -keep:] for old, new in joined]
        num_new = read.states[0].shape[1] if read.states else 0
        real = torch.cat([self.real, self.real.new_ones(len(self.real), num_new)], 1)
        return Past(states, real[:, -keep:], self._stored_after(read, keep))

    def _stored_after(self, read: Read, keep: int) -> Stored | None:
        if read.pairs is None:
            return None
        old = Stored.nothing(read.pairs.keys) if self.stored is None else self.stored
        return old.then(read.pairs, begin=read.pairs.keys.shape[2]).last(keep + read.num_stored)


@runtime_checkable
class SegmentReader(Protocol):
    """A model that reads on after what it remembers."""

    def read_on(
        self, tokens: Int[Tensor, "row time"], past: Past
    ) -> tuple[Float[Tensor, "row time dim"], Read]: ...


class Remembering(nn.Module):
    """A model and the memory of its rows, saved with the run for resuming.

    Every process holds the memory of all rows of a batch and changes that of its own rows, `first`
    to `last`; a checkpoint joins them (`only_own_rows`).
    """

    states: Tensor
    num_remembered: Tensor

    def __init__(
        self,
        model: nn.Module,
        *,
        num_layers: int,
        dim: int,
        length: int,
        num_rows: int,
        own: tuple[int, int] | None = None,
        ring: PairRing | None = None,
    ) -> None:
        """`ring`: the pairs of a layer that looks up."""
        super().__init__()
        self.model = model
        self.ring = ring
        self.first, self.last = (0, num_rows) if own is None else own
        self.register_buffer("states", torch.zeros(num_layers, num_rows, length, dim))
        self.register_buffer("num_remembered", torch.zeros(num_rows, dtype=torch.int64))

    def forward(
        self, tokens: Int[Tensor, "row time"], fresh: Bool[Tensor, " row"]
    ) -> Float[Tensor, "row time dim"]:
        """Continue reading; `fresh` rows begin anew."""
        # A process without rows reads one without targets, and remembers nothing of it.
        first = min(self.first, self.states.shape[1] - 1)
        own = slice(first, first + len(tokens))
        length = self.states.shape[2]
        count = torch.where(fresh, 0, self.num_remembered[own])
        real = torch.arange(length, device=count.device) >= length - count[:, None]
        # A copy: what the backward pass needs must not change when the memory does.
        stored = None if self.ring is None else self.ring.look(own, fresh)
        past = Past(self.states[:, own].clone().unbind(0), real, stored)
        model: SegmentReader = self.model  # type: ignore[assignment]
        hidden, read = model.read_on(tokens, past)
        if self.last > self.first:
            with torch.no_grad():
                for number, state in enumerate(past.after(Read(read.states), keep=length).states):
                    self.states[number, own] = state
                self.num_remembered[own] = (count + tokens.shape[1]).clamp(max=length)
                if self.ring is not None and read.pairs is not None:
                    self.ring.write(own, fresh, read.pairs)
        return hidden

    def only_own_rows(self, name: str, tensor: Tensor) -> Tensor | None:
        """A copy of a state in which the rows of other processes are zero; None for a weight."""
        if name not in ("states", "num_remembered") and not name.startswith("ring."):
            return None
        rows = tensor.transpose(0, 1) if name == "states" else tensor
        alone = torch.zeros_like(rows)
        alone[self.first : self.last] = rows[self.first : self.last]
        return alone.transpose(0, 1).contiguous() if name == "states" else alone
