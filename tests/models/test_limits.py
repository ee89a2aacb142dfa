"""Limits of length: what is said beforehand is what the kernels refuse themselves."""

import pytest
import torch

from headwise.errors import SettingsError, UsageError
from headwise.language import use_language
from headwise.models.choices import DecoderOnlySettings, EncoderDecoderSettings, build_model
from headwise.models.limits import (
    Limit,
    check_buckets,
    check_rows,
    row_limits,
    source_limits,
    target_limits,
)
from headwise.models.recurrent.choices import RecurrentTranslatorSettings
from headwise.models.sentence_encoder import TransformerEncoderSettings
from headwise.models.transformer_stepper import TransformerStepper
from headwise.settings import check_settings
from tests.reference.sentences import draw_pairs, padded_batch

LOCATION = {"kind": "full", "score": {"kind": "location", "max_length": 7}}


def small(**changes) -> EncoderDecoderSettings:
    data = {"dim": 8, "encoder": {"layers": 1, "heads": 2}, "decoder": {"layers": 1, "heads": 2}}
    return check_settings(EncoderDecoderSettings, data | changes)


def test_most_models_read_rows_of_any_length() -> None:
    assert source_limits(EncoderDecoderSettings()) == target_limits(EncoderDecoderSettings()) == []
    assert row_limits(DecoderOnlySettings()) == row_limits(TransformerEncoderSettings()) == []
    for attention in ({"kind": "none"}, {"kind": "luong"}):
        settings = check_settings(RecurrentTranslatorSettings, {"attention": attention})
        assert source_limits(settings) == target_limits(settings) == []


def test_every_limit_has_its_key() -> None:
    settings = small(
        position={"kind": "learned", "max_length": 11},
        encoder={"layers": 1, "heads": 2, "attention": {"kind": "linformer", "max_length": 13}},
        decoder={
            "layers": 1,
            "heads": 2,
            "attention": LOCATION,
            "cross_attention": {"kind": "linformer", "max_length": 17},
        },
    )
    position = Limit("model.position.max_length", 11)
    encoder, cross = (
        ("model.encoder.attention.max_length", 13),
        ("model.decoder.cross_attention.max_length", 17),
    )
    assert source_limits(settings) == [position, Limit(*encoder), Limit(*cross)]
    assert target_limits(settings) == [
        position,
        Limit("model.decoder.attention.score.max_length", 7),
    ]
    encoder = check_settings(
        TransformerEncoderSettings, {"attention": {"kind": "linformer", "max_length": 5}}
    )
    assert row_limits(encoder) == [Limit("model.attention.max_length", 5)]
    bahdanau = {"kind": "bahdanau", "score": {"kind": "location", "max_length": 3}}
    recurrent = check_settings(RecurrentTranslatorSettings, {"attention": bahdanau})
    assert source_limits(recurrent) == [Limit("model.attention.score.max_length", 3)]


def test_a_row_over_a_limit_is_refused_in_both_languages() -> None:
    limit = Limit("model.attention.max_length", 7)
    check_rows([limit], 7, rows=("data.row_tokens", "data.row_tokens"))
    with pytest.raises(
        SettingsError,
        match=r"max_length is 7, but rows have 8 tokens \(data\.row_tokens\); set .*=8 or more",
    ) as caught:
        check_rows([limit], 8, rows=("data.row_tokens", "data.row_tokens"))
    use_language("zh")
    assert "而每行有 8 个词元" in str(caught.value)


def test_what_certainly_suffices_and_what_has_no_limit_are_named() -> None:
    settings = small(
        position={"kind": "learned", "max_length": 5},
        encoder={
            "layers": 1,
            "heads": 2,
            "attention": {"kind": "linformer", "rank": 3, "max_length": 5},
        },
        decoder={"layers": 1, "heads": 2, "attention": LOCATION},
    )
    found = []
    for limit in source_limits(settings) + target_limits(settings)[1:]:
        with pytest.raises(SettingsError) as caught:
            check_rows([limit], 8, rows=("data.row_tokens", "data.row_tokens"), enough=16)
        found.append(str(caught.value).partition("; ")[2])
    position, encoder, decoder = found
    assert position.startswith(
        "set model.position.max_length=16 or more, make the rows shorter, or use "
    )
    assert "model.position.kind=sinusoidal, rotary, alibi, " in position
    assert "or use model.encoder.attention.kind=fused, without a limit" in encoder
    assert "or use model.decoder.attention.score.kind=scaled_dot, without a limit" in decoder


@pytest.mark.parametrize("place", ["encoder", "decoder", "cross"])
def test_the_limit_is_the_longest_row_that_runs(place: str, generator: torch.Generator) -> None:
    summed = {"kind": "linformer", "rank": 3, "max_length": 7}
    changes = {
        "encoder": {"encoder": {"layers": 1, "heads": 2, "attention": summed}},
        "decoder": {"decoder": {"layers": 1, "heads": 2, "attention": LOCATION}},
        "cross": {"decoder": {"layers": 1, "heads": 2, "cross_attention": summed}},
    }[place]
    settings = small(**changes)
    limits = target_limits(settings) if place == "decoder" else source_limits(settings)
    assert [limit.tokens for limit in limits] == [7]
    model = build_model(settings, source_size=11, target_size=11, generator=generator)
    # 7 tokens a side, with the marks.
    padded_batch(draw_pairs([(6, 6)], 11, generator)).logits(model)
    longer = (6, 7) if place == "decoder" else (7, 6)
    with pytest.raises(UsageError, match="max_length"):
        padded_batch(draw_pairs([longer], 11, generator)).logits(model)


@pytest.mark.parametrize(
    "kernel",
    [
        {"kind": "linformer", "rank": 3, "max_length": 37},
        LOCATION | {"score": {"kind": "location", "max_length": 37}},
    ],
)
def test_buffers_are_rounded_up_to_the_limit_and_no_further(
    kernel: dict, generator: torch.Generator
) -> None:
    settings = small(encoder={"layers": 1, "heads": 2, "attention": kernel})
    model = build_model(settings, source_size=11, target_size=11, generator=generator)
    stepper = TransformerStepper(model, static=True)
    assert stepper.fill_buffers([[4] * 35], width=1, max_length=3).source_limit == 37


def test_more_buckets_than_tokens_are_refused_with_a_number_that_fits() -> None:
    hashed = {"kind": "reformer", "num_buckets": 66}
    for key, settings in (
        ("model.encoder.attention", small(encoder={"layers": 1, "heads": 2, "attention": hashed})),
        ("model.decoder.attention", small(decoder={"layers": 1, "heads": 2, "attention": hashed})),
        ("model.attention", check_settings(TransformerEncoderSettings, {"attention": hashed})),
    ):
        check_buckets(settings, 66)
        with pytest.raises(
            SettingsError, match=f"{key}.num_buckets is 66, but rows have 65 tokens"
        ) as caught:
            check_buckets(settings, 65)
        assert "num_buckets to 32 or less" in str(caught.value)
