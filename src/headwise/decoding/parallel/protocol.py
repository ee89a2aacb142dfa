"""The interface between parallel models and the searches over them, which have no left-to-right
order.

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

from headwise.decoding.parallel.edit_round import EditPolicies


@dataclass(frozen=True)
class PartialTargets:
    """Targets whose tokens are looked for, one per row, padded to the longest."""

    sentence: Int[Tensor, " candidate"]
    """The number of the source that each belongs to."""
    length: Int[Tensor, " candidate"]
    """Its positions, the end of the sentence included."""
    known: Int[Tensor, "candidate position"]
    """Its tokens; PAD where the token is not known, and after the end."""
    copied: Int[Tensor, "candidate position"] | None = None
    """The source tokens that are read where the token is not known, if the search chose them."""

    def choose(self, index: Int[Tensor, " chosen"]) -> "PartialTargets":
        length = self.length[index]
        longest = int(length.max()) if len(length) else 0
        copied = None if self.copied is None else self.copied[index, :longest]
        return PartialTargets(self.sentence[index], length, self.known[index, :longest], copied)


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


class CopiedSources(Protocol):
    """Source tokens, repeated: one candidate per row."""

    @property
    def sentence(self) -> Int[Tensor, " candidate"]: ...
    @property
    def tokens(self) -> Int[Tensor, "candidate position"]:
        """The end of the sentence is the last one; then padding."""
        ...

    @property
    def log_probability(self) -> Float[Tensor, " candidate"]: ...
    @property
    def fertility(self) -> Int[Tensor, "candidate source"]:
        """How often each source token is copied."""
        ...

    @property
    def fertility_log_probability(self) -> Float[Tensor, "candidate source"]: ...


class ScoredChain(Protocol):
    """The choices of each position, and the scores of a linear-chain CRF over them."""

    @property
    def tokens(self) -> Int[Tensor, "candidate position choice"]: ...
    @property
    def emissions(self) -> Float[Tensor, "candidate position choice"]: ...
    @property
    def transitions(self) -> Float[Tensor, "candidate position-1 choice choice"]: ...


class SequenceModel(ParallelModel, Protocol):
    """A parallel model whose lengths may follow from fertilities, and whose outputs may form a
    chain."""

    @property
    def vocabulary_size(self) -> int: ...

    @property
    def copies_by_fertility(self) -> bool: ...

    @property
    def is_chain(self) -> bool: ...

    def likely_copies(
        self, memory: Any, *, least: Sequence[int], most: Sequence[int]
    ) -> CopiedSources:
        """Copies by the most likely fertilities of each sentence, between two numbers of them."""
        ...

    def sampled_copies(
        self,
        memory: Any,
        *,
        least: Sequence[int],
        most: Sequence[int],
        count: int,
        temperature: float,
        generators: Sequence[torch.Generator],
    ) -> CopiedSources:
        """For each sentence the same first, and then samples: `count` candidates."""
        ...

    def predict_chain(
        self,
        memory: Any,
        candidates: PartialTargets,
        *,
        excluded: Sequence[int],
        wanted: Sequence[int] = (),
    ) -> ScoredChain:
        """The most probable tokens that are not excluded; `wanted` are among the choices."""
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


@runtime_checkable
class EditedModel(Protocol):
    """A model that deletes and inserts words."""

    @property
    def device(self) -> torch.device: ...

    def read_sources(self, sources: Sequence[Sequence[int]]) -> Any: ...

    def policies(self, memory: Any) -> EditPolicies:
        """What it decides about sequences of these sources."""
        ...
