"""Runs a trained parallel translator for the searches (decoding/parallel/protocol.py): it reads the
sources once, then scores all positions of any number of candidate translations.

Tested against: the packed rows of training.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.models.parallel.edit_decoder import EditDecoder
from headwise.models.parallel.segment_spans import upsample
from headwise.models.parallel.source_copies import (
    FertilityScores,
    SourceCopies,
    likely_copies,
    sampled_copies,
)
from headwise.models.parallel.translator import ParallelTranslator
from headwise.text.tokenizer import EOS, PAD

UNLIKELY = -1e9
"""The score of a token that must not be written, in a chain whose choices are fewer."""


@runtime_checkable
class CandidateRows(Protocol):
    """Targets whose tokens are looked for, one per row."""

    @property
    def sentence(self) -> Tensor: ...
    @property
    def length(self) -> Tensor: ...
    @property
    def known(self) -> Tensor: ...
    @property
    def copied(self) -> Tensor | None: ...


@dataclass(frozen=True)
class SourceMemory:
    """Encoded sources, one per row."""

    tokens: Int[Tensor, "sentence source"]
    segment: Int[Tensor, "sentence source"]
    hidden: Float[Tensor, "sentence source dim"]


class ChainScores(NamedTuple):
    """The candidate tokens of each position and their scores."""

    tokens: Int[Tensor, "candidate position choice"]
    emissions: Float[Tensor, "candidate position choice"]
    """Log-probabilities under the softmax over the vocabulary."""
    transitions: Float[Tensor, "candidate position-1 choice choice"]


class ParallelInference:
    """A trained model in evaluation mode."""

    def __init__(self, model: ParallelTranslator) -> None:
        self.model = model.eval()

    @property
    def device(self) -> torch.device:
        return self.model.output.weight.device

    @property
    def output_form(self) -> str:
        return self.model.output_form

    @property
    def vocabulary_size(self) -> int:
        return self.model.output.weight.shape[0]

    @property
    def num_begins(self) -> int | None:
        return self.model.num_begins

    @torch.no_grad()
    def read_sources(self, sources: Sequence[Sequence[int]]) -> SourceMemory:
        longest = max(map(len, sources)) + 1
        tokens = torch.tensor(
            [[*source, EOS, *([PAD] * (longest - len(source) - 1))] for source in sources],
            device=self.device,
        )
        lengths = torch.tensor([len(source) + 1 for source in sources], device=self.device)
        position = torch.arange(longest, device=self.device).expand_as(tokens)
        segment = (position < lengths[:, None]).long()
        hidden = self.model.encode(tokens, segment=segment, position=position)
        return SourceMemory(tokens, segment, hidden)

    @torch.no_grad()
    def length_scores(
        self, memory: SourceMemory, *, longest: int
    ) -> Float[Tensor, "sentence length"]:
        assert self.model.length is not None
        return self.model.length.log_probabilities(memory.hidden, memory.segment, longest=longest)

    @torch.no_grad()
    def predict(
        self, memory: SourceMemory, candidates: CandidateRows
    ) -> Float[Tensor, "candidate position vocab"]:
        return self.model.logits(self.hidden(memory, candidates)).float().log_softmax(-1)

    @property
    def copies_by_fertility(self) -> bool:
        return self.model.fertility is not None

    @property
    def is_chain(self) -> bool:
        return self.model.chain is not None

    @torch.no_grad()
    def likely_copies(
        self, memory: SourceMemory, *, least: Sequence[int], most: Sequence[int]
    ) -> SourceCopies:
        """One candidate for each sentence: copies by its most likely fertilities, the end included,
        as many as the limits allow."""
        return likely_copies(
            self._fertility_scores(memory),
            least=torch.tensor(least, device=self.device),
            most=torch.tensor(most, device=self.device),
        )

    @torch.no_grad()
    def sampled_copies(
        self,
        memory: SourceMemory,
        *,
        least: Sequence[int],
        most: Sequence[int],
        count: int,
        temperature: float,
        generators: Sequence[torch.Generator],
    ) -> SourceCopies:
        """The most likely fertilities of each sentence, and `count` - 1 samples."""
        return sampled_copies(
            self._fertility_scores(memory),
            least=torch.tensor(least, device=self.device),
            most=torch.tensor(most, device=self.device),
            count=count,
            temperature=temperature,
            generators=generators,
        )

    def _fertility_scores(self, memory: SourceMemory) -> FertilityScores:
        assert self.model.fertility is not None
        return FertilityScores(self.model.fertility(memory.hidden), memory.tokens, memory.segment)

    @torch.no_grad()
    def predict_chain(
        self,
        memory: SourceMemory,
        candidates: CandidateRows,
        *,
        excluded: Sequence[int],
        wanted: Sequence[int] = (),
    ) -> ChainScores:
        """The most probable tokens of each position and their scores, `excluded` ones left out.

        `wanted` are tokens of the first positions that must be among the choices.
        """
        assert self.model.chain is not None
        hidden = self.hidden(memory, candidates)
        scores = self.model.logits(hidden).float().log_softmax(-1)
        offered = scores.clone()
        offered[..., list(excluded)] = -torch.inf
        for position, token in enumerate(wanted):
            offered[:, position, token] = torch.inf
        tokens = offered.topk(self.model.chain.num_candidates).indices
        allowed = offered.gather(2, tokens) > -torch.inf
        emissions = scores.gather(2, tokens).masked_fill(~allowed, UNLIKELY)
        return ChainScores(tokens, emissions, self.model.chain.transitions(tokens, hidden))

    @torch.no_grad()
    def predict_upsampled(
        self, memory: SourceMemory
    ) -> tuple[Float[Tensor, "sentence position vocab"], Int[Tensor, " sentence"]]:
        """Log-probabilities at the positions that follow from the source, and their number."""
        hidden, count = self.upsampled_hidden(memory)
        return self.model.logits(hidden).float().log_softmax(-1), count

    @torch.no_grad()
    def predict_graph(
        self, memory: SourceMemory
    ) -> tuple[
        Float[Tensor, "sentence vertex vocab"],
        Float[Tensor, "sentence vertex successor"],
        Int[Tensor, " sentence"],
    ]:
        """Log-probabilities of tokens and of links, and the number of vertices."""
        assert self.model.links is not None
        hidden, count = self.upsampled_hidden(memory)
        scores = self.model.logits(hidden).float().log_softmax(-1)
        return scores, self.model.links(hidden, count), count

    def policies(self, memory: SourceMemory) -> EditDecoder:
        """What decides about deletions, insertions and words, if the target is edited."""
        return EditDecoder(self.model, memory.hidden, memory.segment)

    def upsampled_hidden(
        self, memory: SourceMemory
    ) -> tuple[Float[Tensor, "sentence position dim"], Int[Tensor, " sentence"]]:
        """States of a decoder whose positions follow from the source."""
        assert self.model.factor is not None
        position = torch.arange(memory.tokens.shape[1], device=self.device)
        segment, position = upsample(
            memory.segment, position.expand_as(memory.tokens), factor=self.model.factor
        )
        spans = {
            "source_segment": memory.segment,
            "target_segment": segment,
            "target_position": position,
        }
        known = torch.full_like(segment, PAD)
        tokens = self.model.read_target(known, memory.tokens, **spans)
        return self.model.decode(tokens, memory.hidden, **spans), (segment > 0).sum(1)

    def hidden(
        self, memory: SourceMemory, candidates: CandidateRows
    ) -> Float[Tensor, "candidate position dim"]:
        """States of the decoder at all positions."""
        known, sentence = candidates.known, candidates.sentence
        position = torch.arange(known.shape[1], device=self.device).expand_as(known)
        segment = (position < candidates.length[:, None]).long()
        source_segment = memory.segment[sentence]
        tokens = self.model.read_target(
            known,
            memory.tokens[sentence],
            source_segment=source_segment,
            target_segment=segment,
            target_position=position,
            copied=candidates.copied,
        )
        return self.model.decode(
            tokens,
            memory.hidden[sentence],
            source_segment=source_segment,
            target_segment=segment,
            target_position=position,
        )
