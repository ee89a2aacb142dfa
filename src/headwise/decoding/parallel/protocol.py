"""What searches without a left-to-right order need of a model.

A search reads the sources once. It then asks for the distributions of all positions of any number
of candidates: targets of a given length of which some tokens are known. A candidate names the
source that it belongs to, so that several lengths of one sentence are tried side by side.

Tested through each search, with a fake model that must spell a word.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class PartialTargets:
    """Targets whose tokens are looked for, one per row, padded to the longest."""

    sentence: Int[Tensor, " candidate"]
    """The number of the source that each belongs to."""
    length: Int[Tensor, " candidate"]
    """Its positions, the end of the sentence included."""
    known: Int[Tensor, "candidate position"]
    """Its tokens; PAD where the token is not known, and after the end."""

    def choose(self, index: Int[Tensor, " chosen"]) -> "PartialTargets":
        length = self.length[index]
        longest = int(length.max()) if len(length) else 0
        return PartialTargets(self.sentence[index], length, self.known[index, :longest])


@runtime_checkable
class ParallelModel(Protocol):
    """A model that computes all positions of a target at once."""

    @property
    def device(self) -> torch.device: ...

    @property
    def num_begins(self) -> int | None:
        """The number of positions of every target, if it is fixed: what follows the first end of a
        sentence is cut off. None: the length of a target is known before its tokens are."""
        ...

    def read_sources(self, sources: Sequence[Sequence[int]]) -> Any:
        """Encode the sources, which are not empty."""
        ...

    def length_scores(self, memory: Any, *, longest: int) -> Float[Tensor, "sentence length"]:
        """log p(T = 1 … longest), the end included; only if lengths are predicted."""
        ...

    def predict(
        self, memory: Any, candidates: PartialTargets
    ) -> Float[Tensor, "candidate position vocab"]:
        """Log-probabilities of the tokens of all positions."""
        ...


@runtime_checkable
class AlignedModel(Protocol):
    """A model with as many positions as follow from the source, each with a token or a blank."""

    @property
    def device(self) -> torch.device: ...

    def read_sources(self, sources: Sequence[Sequence[int]]) -> Any: ...

    def predict_upsampled(
        self, memory: Any
    ) -> tuple[Float[Tensor, "sentence position vocab"], Int[Tensor, " sentence"]]:
        """Log-probabilities of tokens and the blank (PAD), and the number of positions."""
        ...


@runtime_checkable
class GraphModel(Protocol):
    """A model whose positions are the vertices of a graph."""

    @property
    def device(self) -> torch.device: ...

    def read_sources(self, sources: Sequence[Sequence[int]]) -> Any: ...

    def predict_graph(
        self, memory: Any
    ) -> tuple[
        Float[Tensor, "sentence vertex vocab"],
        Float[Tensor, "sentence vertex successor"],
        Int[Tensor, " sentence"],
    ]:
        """Log-probabilities of tokens and links, and the number of vertices."""
        ...
