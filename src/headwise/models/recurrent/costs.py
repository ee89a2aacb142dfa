"""The cost of a recurrent translator, part by part, counted as describe.py does for Transformers.

Every word is multiplied once with the two matrices of a layer. The decoder keeps one state of
constant size, so a word adds nothing to its cache. For each source word, a decoder with attention
keeps dim numbers (and the keys of a learned score); a decoder without attention keeps none.

Tested against: a case worked by hand, and torch's FlopCounterMode.
"""

from collections.abc import Iterable

from torch import nn

from headwise.attention.scores.comparison import CountedScore
from headwise.models.recurrent.decoders import SourceAttention
from headwise.models.recurrent.translator import RecurrentTranslator


def members(model: RecurrentTranslator) -> dict[str, list[nn.Module]]:
    """The modules of each part, by its name in the table of describe.py."""
    readout = [module for module in model.decoder.children() if isinstance(module, nn.Linear)]
    attention = [] if model.decoder.attention is None else [model.decoder.attention]
    return {
        "embedding": [model.source_embedding, model.target_embedding],
        "recurrent_encoder": [model.encoder],
        "recurrent_decoder": [model.decoder.layers],
        "source_attention": [*attention, *readout],
        "output": [model.output],
    }


def count_flops(
    model: RecurrentTranslator, *, source_length: int
) -> tuple[dict[str, int], dict[str, int]]:
    """Operations of each part per source token and per target token."""
    readout = sum(
        2 * part.weight.numel() for part in model.decoder.children() if isinstance(part, nn.Linear)
    )
    once, each = _attention_flops(model, source_length)
    per_source = {"recurrent_encoder": _products(model.encoder.modules()), "source_attention": once}
    per_target = {
        "recurrent_decoder": _products(model.decoder.layers.modules()),
        "source_attention": each + readout,
        "output": 2 * model.output.weight.numel(),
    }
    return per_source, per_target


def cached_numbers(model: RecurrentTranslator) -> int:
    """Of each source word, while writing."""
    attention, dim = model.decoder.attention, model.output.in_features
    if attention is None:
        return 0
    return dim + attention.map_keys(model.output.weight.new_zeros(1, 1, dim)).shape[-1]


def _products(modules: Iterable[nn.Module]) -> int:
    matrices = (
        weight
        for module in modules
        if isinstance(module, nn.RNNBase)
        for name, weight in module.named_parameters()
        if name.startswith("weight")
    )
    return sum(2 * weight.numel() for weight in matrices)


def _attention_flops(model: RecurrentTranslator, num_keys: int) -> tuple[int, int]:
    """Of a source word once; of a target word: its scores with all keys, the mean of all values."""
    attention = model.decoder.attention
    if attention is None:
        return 0, 0
    dim = model.output.in_features
    of_query, of_key, of_pair = _score_flops(attention, dim)
    return of_key, of_query + num_keys * (of_pair + 2 * dim)


def _score_flops(attention: SourceAttention, dim: int) -> tuple[int, int, int]:
    """Operations for a query, for a key, and for a pair of them."""
    score = attention.kernel.score
    if isinstance(score, CountedScore):
        return score.count_operations(dim)
    return 0, 0, 2 * dim
