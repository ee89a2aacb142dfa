"""Static buffers: the numbers of plain steps, through every rearrangement and again with the next
batch."""

import pytest
import torch

from headwise.decoding.choices import (
    BeamSettings,
    DecodingSettings,
    GreedySettings,
    SamplingSettings,
    decode,
)
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.static_buffers import (
    DecoderBuffers,
    round_finely,
    round_length,
    round_sentences,
)
from headwise.models.transformer_stepper import MAX_BUFFERS, TransformerStepper
from tests.models.test_encoder_decoder import PLAIN, VOCAB, make

SOURCES = [[4, 5, 6, 7, 8], [9], [10, 11, 12], [13, 14, 4, 5], [6, 7]]


@pytest.mark.parametrize("variant", PLAIN)
@pytest.mark.parametrize("width", [1, 3])
def test_steps_equal_plain_steps_through_follows_and_smaller_buffers(
    variant: str, width: int, generator: torch.Generator
) -> None:
    decoder = TransformerStepper(make(variant, generator), static=True)
    for sources in (SOURCES, SOURCES[::-1]):  # the second batch finds what the first left behind
        buffers = decoder.fill_buffers(sources, width=width, max_length=9)
        state = decoder.start(sources, width=width, max_length=9)
        num_rows = len(sources) * width
        for time in range(9):
            tokens = torch.randint(1, VOCAB, (num_rows,), generator=generator)
            expected, state = decoder.step(state, tokens)
            fed = torch.ones(buffers.num_sentences * width, dtype=torch.long)
            fed[:num_rows] = tokens
            found = buffers.step(fed)[:num_rows].log_softmax(-1)
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
            groups = torch.arange(num_rows // width)
            index = (
                groups[:, None] * width
                + torch.randint(0, width, (len(groups), width), generator=generator)
            ).view(-1)
            everyone = torch.arange(len(fed))
            everyone[:num_rows] = index
            if time == 3:  # sentences 0 and 3 continue, in buffers for two
                kept = torch.cat([torch.arange(0, width), torch.arange(3 * width, 4 * width)])
                buffers.follow(everyone)
                buffers = buffers.narrow(2, kept)
                state, num_rows = decoder.reorder(state, index[kept]), 2 * width
            elif width > 1 or time % 2:
                buffers.follow(everyone)
                state = decoder.reorder(state, index)


def settings_of(kind: str) -> DecodingSettings:
    return {
        "greedy": GreedySettings(max_length={"limit": 30}),
        "ends": GreedySettings(min_length=3, at_limit="end", max_length=8, allow_unknown=False),
        "beam": BeamSettings(size=3, num_best=3, max_length={"limit": 30}),
        "samples": SamplingSettings(num_samples=3, max_length={"limit": 30}),
        "proven": BeamSettings(
            size=4,
            stop="proven",
            min_length=2,
            at_limit="end",
            max_length={"factor": 1, "extra": 3},
        ),
    }[kind]


@pytest.mark.parametrize("kind", ["greedy", "ends", "beam", "proven", "samples"])
def test_recorded_searches_equal_plain_searches(kind: str, generator: torch.Generator) -> None:
    model, settings = make("pre_norm", generator), settings_of(kind)
    model.output.weight.data *= 2
    sources = [
        torch.randint(4, VOCAB, (1 + i % 9,), generator=generator).tolist() for i in range(71)
    ]
    plain, static = TransformerStepper(model), TransformerStepper(model, static=True)
    for batch in (sources, sources[:23], sources[30:54], sources[::-1]):
        for found, expected in zip(
            decode(static, batch, settings), decode(plain, batch, settings), strict=True
        ):
            assert [h.tokens for h in found.hypotheses] == [h.tokens for h in expected.hypotheses]
            assert [h.score for h in found.hypotheses] == pytest.approx(
                [h.score for h in expected.hypotheses], abs=1e-5
            )
    assert len(static._buffers) == 2  # 71 sentences in buffers for 96, 23 and 24 in buffers for 24


def what_a_recording_reads(stepper: TransformerStepper, buffers: DecoderBuffers) -> list[int]:
    """The addresses of weights and of what was computed from them."""
    step = stepper._static_step
    joined = [one for layer in step.layers for one in (layer.weight, layer.bias) if one is not None]
    read = [*stepper.model.parameters(), *joined, buffers.positions]
    assert buffers.decoder is step
    return [tensor.data_ptr() for tensor in read]


@pytest.mark.parametrize("variant", PLAIN)
@pytest.mark.parametrize("moves", [False, True])
def test_changed_weights_are_read_and_moved_ones_need_new_buffers(
    variant: str, moves: bool, generator: torch.Generator
) -> None:
    model = make(variant, generator)
    decoder = TransformerStepper(model, static=True)
    first = decoder.fill_buffers(SOURCES, width=1, max_length=5)
    assert decoder.fill_buffers(SOURCES, width=1, max_length=5) is first
    before = what_a_recording_reads(decoder, first)
    with torch.no_grad():
        for weight in model.parameters():
            changed = weight + 0.1 * torch.randn(weight.shape, generator=generator)
            if moves:
                weight.data = changed
            else:
                weight.copy_(changed)
    second = decoder.fill_buffers(SOURCES, width=1, max_length=5)
    assert (second is first) == (not moves)
    assert moves or what_a_recording_reads(decoder, second) == before
    expected, _ = decoder.step(
        decoder.start(SOURCES, width=1, max_length=5), torch.ones(5, dtype=torch.long)
    )
    found = second.step(torch.ones(second.num_sentences, dtype=torch.long))[:5].log_softmax(-1)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_few_buffers_are_kept_and_some_models_have_none(generator: torch.Generator) -> None:
    model: EncoderDecoder = make("pre_norm", generator)
    decoder = TransformerStepper(model, static=True)
    first = decoder.fill_buffers(SOURCES, width=1, max_length=5)
    assert first.num_bytes > 0
    for width in range(2, MAX_BUFFERS + 3):
        decoder.fill_buffers(SOURCES, width=width, max_length=5)
    assert len(decoder._buffers) == MAX_BUFFERS
    assert first.num_bytes == 0  # closed: its memory is free at once
    assert not TransformerStepper(model).has_static_buffers  # not on a CPU, unless asked
    assert not TransformerStepper(model, attending=True, static=True).has_static_buffers

    class OtherLinear(torch.nn.Linear):
        pass

    model.decoder[0].cross_attention.query = OtherLinear(
        model.output.in_features, model.output.in_features
    )
    assert not TransformerStepper(model, static=True).has_static_buffers


def test_sizes_are_rounded_up_to_few() -> None:
    assert sorted({round_sentences(count) for count in range(1, 65)}) == [
        1,
        2,
        3,
        4,
        6,
        8,
        12,
        16,
        24,
        32,
        48,
        64,
    ]
    assert all(
        count <= round_sentences(count) <= max(count + 1, count * 1.5) for count in range(1, 999)
    )
    assert all(0.8 * round_finely(count) < count <= round_finely(count) for count in range(8, 999))
    assert [round_length(n, limit=None) for n in (1, 32, 33, 64, 65)] == [32, 32, 64, 64, 128]
    assert [round_length(n, limit=40) for n in (1, 33, 40)] == [32, 40, 40]
