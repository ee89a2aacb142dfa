"""The whole model: nothing flows back from the future or over from another sentence, whatever it is
built of."""

import pytest
import torch
import torch.nn.functional as F

from headwise.blocks.decoder_block import DecoderBlock
from headwise.models.choices import EncoderDecoderSettings, build_model
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.settings import check_settings
from tests.reference.sentences import draw_pairs, packed_row, padded_batch

VOCAB = 23
PLAIN = {
    "pre_norm": {},
    "post_norm_full": {
        "norm": {"kind": "layer", "place": "after"},
        "encoder": {"layers": 1, "heads": 2, "attention": {"kind": "full"}},
        "decoder": {"layers": 2, "heads": 2, "attention": {"kind": "full"}},
    },
    "rms_gated": {"norm": {"kind": "rms"}, "feed_forward": {"kind": "gated"}},
    "learned_gelu": {
        "position": {"kind": "learned", "max_length": 31},
        "feed_forward": {"kind": "gelu"},
    },
    "no_encoder_layers": {
        "encoder": {"layers": 0, "heads": 1},
        "decoder": {"layers": 1, "heads": 1},
    },
}
# Other scores or weights, positions told to attention, norms over tokens: no other code but the
# plain step knows these.
VARIANTS = PLAIN | {
    "location_local_m": {
        "encoder": {
            "layers": 1,
            "heads": 2,
            "attention": {"kind": "full", "score": {"kind": "additive"}},
        },
        "decoder": {
            "layers": 2,
            "heads": 2,
            "attention": {"kind": "full", "score": {"kind": "location", "max_length": 41}},
            "cross_attention": {"kind": "full", "window": {"kind": "local_m", "half_width": 1}},
        },
    },
    "entmax_local_p": {
        "decoder": {
            "layers": 2,
            "heads": 2,
            "attention": {"kind": "full", "weights": {"kind": "entmax"}},
            "cross_attention": {"kind": "full", "window": {"kind": "local_p", "half_width": 2}},
        },
    },
    "views_same_level": {"decoder": {"layers": 2, "heads": 4, "views": "same_level"}},
    "views_soft": {
        "norm": {"kind": "layer", "place": "after"},
        "decoder": {"layers": 3, "heads": 2, "views": "soft"},
    },
    "power": {"norm": {"kind": "power", "warmup": 1}},
    "power_after": {"norm": {"kind": "power", "place": "after"}},
    "batch": {"norm": {"kind": "batch"}},
    "rotary": {"position": {"kind": "rotary", "pairing": "interleaved"}},
    "alibi": {"position": {"kind": "alibi"}},
    "t5": {"position": {"kind": "t5", "num_buckets": 8, "max_distance": 7}},
    "relative": {
        "position": {"kind": "relative", "limit": 3},
        "encoder": {"layers": 1, "heads": 2, "attention": {"kind": "full"}},
        "decoder": {"layers": 2, "heads": 2, "attention": {"kind": "full"}},
    },
    "relative_keys": {"position": {"kind": "relative", "limit": 3, "values": False}},
    "transformer_xl": {"position": {"kind": "transformer_xl"}},
    "continuous": {"position": {"kind": "continuous", "delta": 0.1, "stride": 4}},
}


def make(variant: str, generator: torch.Generator) -> EncoderDecoder:
    stack = {"layers": 2, "heads": 4}
    settings = check_settings(
        EncoderDecoderSettings, {"dim": 16, "encoder": stack, "decoder": stack} | VARIANTS[variant]
    )
    return build_model(settings, source_size=VOCAB, target_size=VOCAB, generator=generator).eval()


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_future_is_hidden(variant: str, generator: torch.Generator) -> None:
    model = make(variant, generator)
    (source, target), (_, other) = draw_pairs([(5, 7), (5, 7)], VOCAB, generator)
    mixed = target[:4] + other[4:]
    with torch.no_grad():
        first, second = (padded_batch([(source, words)]).hidden(model) for words in (target, mixed))
    torch.testing.assert_close(first[:, :4], second[:, :4])
    assert not torch.allclose(first[:, 4:], second[:, 4:])


@pytest.mark.parametrize("variant", VARIANTS)
def test_packed_sentences_do_not_know_each_other(variant: str, generator: torch.Generator) -> None:
    model = make(variant, generator)
    pairs = draw_pairs([(3, 5), (7, 2), (1, 11)], VOCAB, generator)
    with torch.no_grad():
        alone = torch.cat([padded_batch([pair]).hidden(model)[0] for pair in pairs])
        packed = packed_row(pairs, extra=2).hidden(model)[0]
    torch.testing.assert_close(packed[: len(alone)], alone, atol=1e-5, rtol=1e-5)
    assert packed.isfinite().all()


def test_a_decoder_that_is_not_causal_sees_its_whole_sentence_and_no_other(
    generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DecoderBlock, "is_causal", False)
    model = make("pre_norm", generator)
    (source, target), (_, other) = draw_pairs([(5, 7), (5, 7)], VOCAB, generator)
    mixed = target[:4] + other[4:]
    with torch.no_grad():
        first, second = (padded_batch([(source, words)]).hidden(model) for words in (target, mixed))
        pairs = [(source, target), (source, mixed)]
        packed = packed_row(pairs, extra=2).hidden(model)[0]
    assert not torch.isclose(first[:, :4], second[:, :4]).all(-1).any()
    alone = torch.cat([first[0], second[0]])
    torch.testing.assert_close(packed[: len(alone)], alone, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_every_parameter_learns(variant: str, generator: torch.Generator) -> None:
    model = make(variant, generator).train()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Zero until the first update, and so is the gradient before it.
            if name.endswith("dynamics.narrow.weight"):
                parameter.normal_(0, 0.1, generator=generator)
    batch = packed_row(draw_pairs([(3, 5), (7, 2)], VOCAB, generator), extra=1)
    answers = batch.target.roll(-1, dims=1)
    F.cross_entropy(batch.logits(model)[0], answers[0]).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name


def test_logits_are_hidden_states_times_the_output_matrix(generator: torch.Generator) -> None:
    model = make("pre_norm", generator)
    hidden = torch.randn(2, 3, 16, generator=generator)
    torch.testing.assert_close(model.logits(hidden), hidden @ model.target_embedding.table.weight.T)


def test_dropout_acts_in_training_only(generator: torch.Generator) -> None:
    model = make("pre_norm", generator)
    batch = padded_batch(draw_pairs([(3, 5)], VOCAB, generator))
    with torch.no_grad():
        assert batch.hidden(model).equal(batch.hidden(model))
        model.train()
        assert not batch.hidden(model).equal(batch.hidden(model))


def test_the_first_loss_is_about_the_logarithm_of_the_vocabulary(
    generator: torch.Generator,
) -> None:
    settings = check_settings(
        EncoderDecoderSettings, {"dim": 64, "encoder": {"layers": 2}, "decoder": {"layers": 2}}
    )
    model = build_model(settings, source_size=997, target_size=997, generator=generator).eval()
    batch = padded_batch(draw_pairs([(11, 199)] * 3, 997, generator))
    answers = torch.randint(0, 997, batch.target.shape, generator=generator)
    with torch.no_grad():
        loss = F.cross_entropy(batch.logits(model).flatten(0, 1), answers.flatten())
    # Logits of variance one add one half to log 997 = 6.90.
    assert 6.9 < loss.item() < 7.9


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_the_type_of_the_weights_is_the_type_of_the_states(
    dtype: torch.dtype, generator: torch.Generator
) -> None:
    model = make("pre_norm", generator).to(dtype)
    assert padded_batch(draw_pairs([(3, 5)], VOCAB, generator)).hidden(model).dtype == dtype


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_rows_and_no_tokens(variant: str, generator: torch.Generator) -> None:
    """An empty batch, or rows without a token on either side, give hidden states of that shape and
    no NaN."""
    model = make(variant, generator)
    for rows, source, target in ((0, 5, 5), (2, 0, 5), (2, 5, 0), (2, 0, 0)):
        ones = [torch.ones(rows, length, dtype=torch.long) for length in (source, target)]
        position = [torch.arange(length).expand(rows, length) for length in (source, target)]
        hidden = model(
            *ones,
            source_segment=ones[0],
            target_segment=ones[1],
            source_position=position[0],
            target_position=position[1],
        )
        assert hidden.shape[:2] == (rows, target)
        assert hidden.isfinite().all()
