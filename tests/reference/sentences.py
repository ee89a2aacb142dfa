"""Random sentence pairs, and the ways a model may be given them: padded, packed into a row, or one
by one."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.models.encoder_decoder import EncoderDecoder

PAD, BOS, EOS = 0, 1, 2
Pair = tuple[list[int], list[int]]


def draw_pairs(
    lengths: Sequence[tuple[int, int]], vocab: int, generator: torch.Generator
) -> list[Pair]:
    """(source + end of sentence, beginning of sentence + target) of the given numbers of words."""

    def words(length: int) -> list[int]:
        return torch.randint(4, vocab, (length,), generator=generator).tolist()

    return [([*words(source), EOS], [BOS, *words(target)]) for source, target in lengths]


def pad(sentences: Sequence[Sequence[int]], *, extra: int = 0) -> Tensor:
    longest = max(map(len, sentences)) + extra
    return torch.tensor([[*sentence, *[PAD] * (longest - len(sentence))] for sentence in sentences])


@dataclass(frozen=True)
class Batch:
    """The arguments of EncoderDecoder.forward."""

    source: Tensor
    target: Tensor
    source_segment: Tensor
    target_segment: Tensor
    source_position: Tensor
    target_position: Tensor

    def hidden(self, model: EncoderDecoder) -> Tensor:
        return model(
            self.source,
            self.target,
            source_segment=self.source_segment,
            target_segment=self.target_segment,
            source_position=self.source_position,
            target_position=self.target_position,
        )

    def logits(self, model: EncoderDecoder) -> Tensor:
        return model.logits(self.hidden(model))


def padded_batch(pairs: Sequence[Pair], *, extra: int = 0) -> Batch:
    """One pair a row, the shorter ones filled up."""
    source, target = (
        pad([pair[0] for pair in pairs], extra=extra),
        pad([pair[1] for pair in pairs], extra=extra),
    )
    positions = [torch.arange(tokens.shape[1]).expand_as(tokens) for tokens in (source, target)]
    return Batch(source, target, (source != PAD).long(), (target != PAD).long(), *positions)


def packed_row(pairs: Sequence[Pair], *, extra: int = 0) -> Batch:
    """All pairs in one row, told apart by segment numbers, positions restarting; `extra` places of
    filling at the end."""

    def lay(sentences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor, Tensor]:
        filling = [PAD] * extra
        tokens = [token for sentence in sentences for token in sentence] + filling
        numbers = [
            number for number, sentence in enumerate(sentences, 1) for _ in sentence
        ] + filling
        places = [place for sentence in sentences for place in range(len(sentence))] + filling
        return torch.tensor([tokens]), torch.tensor([numbers]), torch.tensor([places])

    source, source_segment, source_position = lay([pair[0] for pair in pairs])
    target, target_segment, target_position = lay([pair[1] for pair in pairs])
    return Batch(source, target, source_segment, target_segment, source_position, target_position)
