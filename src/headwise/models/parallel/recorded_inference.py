"""Runs a parallel translator on a GPU with recorded passes, for a few sentences at a time.

A pass over one sentence launches some 700 operations, and starting them takes ten times as long as
computing them. So the encoder and the decoder are recorded as CUDA graphs
(gpu/recorded_function.py). Sentences and lengths are rounded up, and what was added is cut off
again:

    sentences   1, 2, 3, 4, 6, 8, 12, …                     an added one has a single token
    positions   multiples of an eighth of a power of two    as after the end of a short sentence

Large batches keep the GPU busy as they are and are computed plainly. So are chains and edits, whose
steps follow from what was predicted.

Tested on a CPU, where nothing is recorded: equals inference.py, for one sentence and for batches.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from headwise.gpu.recorded_function import RecordedFunction
from headwise.models.parallel.inference import CandidateRows, ParallelInference, SourceMemory
from headwise.models.parallel.translator import ParallelTranslator
from headwise.models.static_buffers import round_finely, round_sentences
from headwise.text.tokenizer import EOS, PAD

MOST_POSITIONS = 4096
"""Positions of a pass that is recorded; the logits of more keep a GPU busy."""


@dataclass(frozen=True)
class PaddedMemory(SourceMemory):
    """Encoded sources, and the same with the sentences that were added."""

    whole: SourceMemory


@dataclass(frozen=True)
class _PaddedCandidates:
    """Candidates as tensors at their places."""

    sentence: Tensor
    length: Tensor
    known: Tensor
    copied: Tensor | None


class RecordedInference(ParallelInference):
    """The same results, up to the rounding of sums."""

    def __init__(self, model: ParallelTranslator) -> None:
        super().__init__(model)
        self._encode = RecordedFunction(self._encode_rows)
        self._predict = RecordedFunction(self._predict_rows)
        self._predict_upsampled = RecordedFunction(self._predict_positions)
        self._predict_graph = RecordedFunction(self._predict_vertices)

    @property
    def is_plain(self) -> bool:
        """Whether a pass could not be recorded."""
        passes = self._encode, self._predict, self._predict_upsampled, self._predict_graph
        return any(one.is_plain for one in passes)

    @torch.no_grad()
    def read_sources(self, sources: Sequence[Sequence[int]]) -> SourceMemory:
        count, width = round_sentences(len(sources)), round_finely(max(map(len, sources)) + 1)
        if count * width > MOST_POSITIONS:
            return super().read_sources(sources)
        rows = [*sources, *[()] * (count - len(sources))]
        filled = [[*row, EOS, *([PAD] * (width - len(row) - 1))] for row in rows]
        lengths = torch.tensor([len(row) + 1 for row in rows])
        tokens = torch.tensor(filled)
        segment = (torch.arange(width) < lengths[:, None]).long()
        tokens, segment = (one.to(self.device, non_blocking=True) for one in (tokens, segment))
        (hidden,) = self._encode(tokens, segment)
        whole, kept = SourceMemory(tokens, segment, hidden), len(sources)
        return PaddedMemory(tokens[:kept], segment[:kept], hidden[:kept], whole)

    def _encode_rows(self, tokens: Tensor, segment: Tensor) -> tuple[Tensor, ...]:
        position = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        return (self.model.encode(tokens, segment=segment, position=position),)

    @torch.no_grad()
    def predict(
        self, memory: SourceMemory, candidates: CandidateRows
    ) -> Float[Tensor, "candidate position vocab"]:
        count, width = candidates.known.shape
        size = round_sentences(max(1, count)), round_finely(max(1, width))
        if not isinstance(memory, PaddedMemory) or size[0] * size[1] > MOST_POSITIONS:
            return super().predict(memory, candidates)
        rows, columns = size[0] - count, size[1] - width
        whole = memory.whole
        given = [
            F.pad(candidates.sentence, (0, rows)),
            F.pad(candidates.length, (0, rows), value=1),
            F.pad(candidates.known, (0, columns, 0, rows), value=PAD),
        ]
        if candidates.copied is not None:
            given.append(F.pad(candidates.copied, (0, columns, 0, rows), value=PAD))
        (scores,) = self._predict(whole.tokens, whole.segment, whole.hidden, *given)
        return scores[:count, :width]

    def _predict_rows(
        self, tokens: Tensor, segment: Tensor, hidden: Tensor, *given: Tensor
    ) -> tuple[Tensor, ...]:
        sentence, length, known, *copied = given
        rows = _PaddedCandidates(sentence, length, known, copied[0] if copied else None)
        return (super().predict(SourceMemory(tokens, segment, hidden), rows),)

    @torch.no_grad()
    def predict_upsampled(
        self, memory: SourceMemory
    ) -> tuple[Float[Tensor, "sentence position vocab"], Int[Tensor, " sentence"]]:
        whole = self._recordable(memory)
        if whole is None:
            return super().predict_upsampled(memory)
        scores, count = self._predict_upsampled(whole.tokens, whole.segment, whole.hidden)
        return scores[: len(memory.tokens)], count[: len(memory.tokens)]

    def _predict_positions(self, *memory: Tensor) -> tuple[Tensor, ...]:
        return super().predict_upsampled(SourceMemory(*memory))

    @torch.no_grad()
    def predict_graph(
        self, memory: SourceMemory
    ) -> tuple[
        Float[Tensor, "sentence vertex vocab"],
        Float[Tensor, "sentence vertex successor"],
        Int[Tensor, " sentence"],
    ]:
        whole = self._recordable(memory)
        if whole is None:
            return super().predict_graph(memory)
        kept = len(memory.tokens)
        scores, links, count = self._predict_graph(whole.tokens, whole.segment, whole.hidden)
        return scores[:kept], links[:kept], count[:kept]

    def _predict_vertices(self, *memory: Tensor) -> tuple[Tensor, ...]:
        return super().predict_graph(SourceMemory(*memory))

    def _recordable(self, memory: SourceMemory) -> SourceMemory | None:
        """What a pass over upsampled sources may be recorded on."""
        if not isinstance(memory, PaddedMemory):
            return None
        assert self.model.factor is not None
        num_positions = memory.whole.tokens.numel() * self.model.factor
        return memory.whole if num_positions <= MOST_POSITIONS else None
