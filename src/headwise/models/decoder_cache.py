"""Counts the numbers that the decoder of a translator caches while it writes one sentence.

    Transformer   keys and values: 2 · layers · dim for each target token and for each source token;
                  a window or linear attention keeps a constant number instead of target tokens
    recurrent     nothing for a target token; with attention, each state of the encoder and its key
    parallel      nothing, because all positions are computed at once

Tested against: what the steppers of the models allocate.
"""

from dataclasses import dataclass

from torch import nn

from headwise.attention.costs import count_cache
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.recurrent.translator import RecurrentTranslator


@dataclass(frozen=True)
class DecoderCache:
    """Numbers, not bytes."""

    per_target_token: int
    """For each token of one hypothesis."""
    fixed: int
    """For one hypothesis of any length: windows, and the sums of linear attention."""
    per_source_token: int
    """For each source token, shared by all hypotheses of a sentence."""


def count_decoder_cache(model: nn.Module) -> DecoderCache | None:
    """None: the model does not write token by token, or is no translator."""
    match model:
        case EncoderDecoder(is_causal=True):
            sizes = [count_cache(block.self_attention) for block in model.decoder]
            of_source = sum(2 * block.self_attention.output.in_features for block in model.decoder)
            return DecoderCache(
                sum(growth for growth, _ in sizes), sum(fixed for _, fixed in sizes), of_source
            )
        case RecurrentTranslator():
            return DecoderCache(0, 0, _count_source_states(model))
        case _:
            return None


def _count_source_states(model: RecurrentTranslator) -> int:
    attention, dim = model.decoder.attention, model.output.in_features
    if attention is None:
        return 0
    keys = attention.map_keys(model.output.weight.new_zeros(1, 1, dim))
    return dim + keys.shape[-1]
