"""Computes the log-probabilities of samples with their gradients: the training forward on one
sample per row (teacher forcing on the model's own translations).

Samples are never padding or the beginning of a sentence. As in drawing, the probability of these is
removed and the rest renormalised:

    log q(y_t) = log p(y_t) - log(1 - p(padding) - p(beginning))

Rows go through the decoder in groups of similar length, so that little is computed for padding. A
Transformer encodes the packed batch once, and the rows of a source share what was encoded; a
recurrent model reads the source again for each row.
Tested against: the log-probabilities with which the samples were drawn.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headwise.data.packing import PackedBatch
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.translation_model import TranslationModel
from headwise.models.unpacking import UnpackedSentences, unpack_sentences
from headwise.tasks.translation.sampled_rows import SampledRows
from headwise.text.tokenizer import BOS, PAD
from headwise.training.parallel.length_groups import length_groups
from headwise.training.parallel.token_scores import score_tokens


class RowScores(NamedTuple):
    """A group of rows."""

    rows: Int[Tensor, " member"]
    """Their numbers."""
    log_probability: Float[Tensor, "member time"]
    """Of each token."""
    is_free: Bool[Tensor, "member time"]
    """Whether the token was drawn: neither given nor padding."""
    state: Float[Tensor, "member time dim"]
    """The decoder's state that predicts the token."""


def score_rows(
    module: TranslationModel, batch: PackedBatch, rows: SampledRows, *, chunk_size: int | None
) -> Iterator[RowScores]:
    """All rows, group by group."""
    sources = unpack_sentences(batch.source_segment, batch.source_position)
    encoded = _encode(module, batch, sources)
    for members in length_groups(rows.length):
        time = int(rows.length[members].max())
        output, pair = rows.tokens[members, :time], rows.pair[members]
        position = torch.arange(time, device=output.device).expand_as(output)
        real = output != PAD
        state = _decode(module, encoded, sources.length, pair, output, position)
        special = torch.full_like(output, PAD), torch.full_like(output, BOS)
        scores = score_tokens(
            state.flatten(0, 1),
            module.output.weight,
            candidates=torch.stack([output, *special], -1).flatten(0, 1),
            bias=module.output.bias,
            chunk_size=chunk_size,
        ).unflatten(0, output.shape)
        allowed = torch.log1p(-scores[..., 1:].exp().sum(-1))
        free = real & (position >= rows.first_free[members, None])
        # Padding is a forbidden token as well: its score is replaced, not multiplied by zero.
        log_probability = torch.where(real, scores[..., 0] - allowed, 0)
        yield RowScores(members, log_probability, free, state)


def _encode(module: TranslationModel, batch: PackedBatch, sources: UnpackedSentences) -> Tensor:
    """One source per row: its memory, or its tokens for a model that must read them again."""
    if isinstance(module, EncoderDecoder):
        memory = module.encode(
            batch.source, segment=batch.source_segment, position=batch.source_position
        )
        return sources.lay(memory)
    return sources.lay(batch.source[..., None])[..., 0]


def _decode(
    module: TranslationModel,
    encoded: Tensor,
    source_length: Int[Tensor, " pair"],
    pair: Int[Tensor, " member"],
    output: Int[Tensor, "member time"],
    position: Int[Tensor, "member time"],
) -> Float[Tensor, "member time dim"]:
    """The states of the decoder along the tokens of each row."""
    begin = torch.full_like(output[:, :1], BOS)
    target = torch.cat([begin, output[:, :-1]], 1)
    segment = (output != PAD).long()
    lengths = source_length[pair]
    width = int(lengths.max())
    source_position = torch.arange(width, device=output.device).expand(len(pair), width)
    source_segment = (source_position < lengths[:, None]).long()
    here = encoded[pair, :width]
    segments = {"source_segment": source_segment, "target_segment": segment}
    if isinstance(module, EncoderDecoder):
        return module.decode(target, here, target_position=position, **segments)
    return module(
        here, target, source_position=source_position, target_position=position, **segments
    )
