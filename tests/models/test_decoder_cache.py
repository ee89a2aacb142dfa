"""The cache of a decoder: by hand, and what the steppers of the models allocate."""

from typing import Any

import pytest
import torch

from headwise.models.choices import EncoderDecoderSettings, build_model
from headwise.models.decoder_cache import DecoderCache, count_decoder_cache
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.parallel.choices import ParallelSettings
from headwise.models.transformer_stepper import TransformerStepper
from headwise.settings import check_settings
from tests.models.recurrent import examples

VOCAB = 11


def make(generator: torch.Generator, **decoder: Any) -> EncoderDecoder:
    data = {
        "dim": 6,
        "encoder": {"layers": 1, "heads": 2},
        "decoder": {"layers": 2, "heads": 3, **decoder},
    }
    settings = check_settings(EncoderDecoderSettings, data)
    model = build_model(settings, source_size=VOCAB, target_size=VOCAB, generator=generator)
    assert isinstance(model, EncoderDecoder)
    return model


@pytest.mark.parametrize(
    ("kernel", "kept"),
    [
        # Keys and values, room for twice left + 1 positions.
        ({"kind": "window", "left": 4, "right": 4}, 2 * 2 * 5 * 6),
        # 3 heads, 2 features, 2 values and a one, rounded up to 8.
        ({"kind": "linear"}, 3 * 2 * 8),
    ],
)
def test_a_memory_that_does_not_grow_is_no_cost_of_a_token(
    kernel: dict[str, Any], kept: int, generator: torch.Generator
) -> None:
    found = count_decoder_cache(make(generator, attention=kernel))
    assert found is not None
    plain = count_decoder_cache(make(generator))
    assert plain == DecoderCache(2 * 2 * 6, 0, 2 * 2 * 6)
    assert (found.per_target_token, found.per_source_token) == (0, plain.per_source_token)
    assert found.fixed == 2 * kept


def test_the_cache_is_what_the_decoder_allocates(generator: torch.Generator) -> None:
    model = make(generator)
    state = TransformerStepper(model).start([[4, 5, 6]], width=1, max_length=12)
    found = count_decoder_cache(model)
    assert found is not None
    assert sum(cache.keys.numel() + cache.values.numel() for cache in state.caches) == (
        13 * found.per_target_token
    )
    assert sum(k.numel() + v.numel() for k, v in state.sources) == 4 * found.per_source_token


def test_a_recurrent_decoder_keeps_source_states_and_their_keys(
    generator: torch.Generator,
) -> None:
    bilinear = {"kind": "luong", "score": {"kind": "general"}}
    assert count_decoder_cache(examples.make(generator, bilinear)) == DecoderCache(0, 0, 14 + 14)
    assert count_decoder_cache(examples.make(generator, "none")) == DecoderCache(0, 0, 0)


def test_a_parallel_decoder_caches_nothing(generator: torch.Generator) -> None:
    heads = {"heads": 2}
    settings = check_settings(ParallelSettings, {"dim": 6, "encoder": heads, "decoder": heads})
    model = build_model(settings, source_size=VOCAB, target_size=VOCAB, generator=generator)
    assert count_decoder_cache(model) is None
