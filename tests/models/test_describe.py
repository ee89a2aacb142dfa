"""Costs: a model small enough to be worked out by hand, and torch's own counter of operations."""

import json

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from headwise.language import use_language
from headwise.models.choices import EncoderDecoderSettings, build_model
from headwise.models.describe import describe
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.settings import check_settings
from tests.reference.sentences import draw_pairs, padded_batch

VOCAB = 11


def make(generator: torch.Generator, **changes) -> EncoderDecoder:
    data = {
        "dim": 6,
        "encoder": {"layers": 1, "heads": 2, "attention": {"kind": "full"}},
        "decoder": {
            "layers": 2,
            "heads": 3,
            "attention": {"kind": "full"},
            "cross_attention": {"kind": "full"},
        },
        "feed_forward": {"kind": "relu", "hidden": 7},
        **changes,
    }
    settings = check_settings(EncoderDecoderSettings, data)
    return build_model(settings, source_size=VOCAB, target_size=VOCAB, generator=generator)


def test_a_model_worked_out_by_hand(generator: torch.Generator) -> None:
    # dim 6, one encoder and two decoder layers, hidden 7, 11 tokens, everything tied, norm before.
    description = describe(make(generator), source_length=5, target_length=3)
    parts = {part.name: part for part in description.parts}
    attention = 4 * 6 * 6 + 4 * 6  # 168: query, key, value, output with their biases
    feed_forward = 2 * 6 * 7 + 7 + 6  # 97
    norm = 2 * 6
    assert parts["embedding"].parameters == 66
    assert parts["encoder_attention"].parameters == attention
    assert (
        parts["decoder_attention"].parameters
        == parts["cross_attention"].parameters
        == 2 * attention
    )
    assert parts["encoder_feed_forward"].parameters == feed_forward
    assert parts["decoder_feed_forward"].parameters == 2 * feed_forward
    assert parts["normalization"].parameters == (2 + 2 * 3 + 2) * norm
    assert parts["output"].parameters == 0  # tied to the embedding
    assert description.parameters == 66 + 5 * 168 + 3 * 97 + 10 * 12 == 1317
    assert parts["encoder_attention"].source_flops == 5 * (2 * 144 + 4 * 5 * 6)
    assert parts["encoder_feed_forward"].source_flops == 5 * (2 * 84)
    assert parts["cross_attention"].source_flops == 5 * (2 * 2 * 72)
    assert parts["cross_attention"].target_flops == 3 * (2 * (2 * 72 + 4 * 5 * 6))
    assert parts["decoder_attention"].target_flops == 3 * (2 * (2 * 144 + 4 * 3 * 6))
    assert parts["output"].target_flops == 3 * (2 * 66)
    assert description.memory.weights_fp32 == 4 * 1317
    assert description.memory.weights_bf16 == 2 * 1317
    assert description.memory.training == 16 * 1317
    assert description.memory.cache_per_target_token == 2 * 2 * 6 * 4
    assert description.memory.cache_fixed == 0
    assert (
        description.flops_per_source_token * 5 + description.flops_per_target_token * 3
        == description.forward_flops
    )
    assert description.training_flops == 3 * description.forward_flops


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"feed_forward": {"kind": "gated", "hidden": 5}, "norm": {"kind": "rms", "place": "after"}},
        {
            "embedding": {"tied": "none"},
            "output_bias": True,
            "position": {"kind": "learned", "max_length": 17},
        },
        {"encoder": {"layers": 0, "heads": 1}},
    ],
    ids=["plain", "gated", "untied", "no_encoder"],
)
def test_parameters_and_operations_equal_torchs_count(
    changes: dict, generator: torch.Generator
) -> None:
    model = make(generator, **changes)
    batch = padded_batch(draw_pairs([(6, 4)], VOCAB, generator))
    description = describe(model, source_length=7, target_length=5)
    assert description.parameters == sum(parameter.numel() for parameter in model.parameters())
    with FlopCounterMode(display=False) as counter:
        logits = batch.logits(model)
    assert counter.get_total_flops() == description.forward_flops
    with FlopCounterMode(display=False) as counter:
        logits.sum().backward()
    assert counter.get_total_flops() == description.training_flops - description.forward_flops


KERNELS = [
    {"kind": "window", "left": 2, "right": 3},
    {"kind": "longformer", "width": 4},
    {"kind": "bigbird", "block": 2},
    {"kind": "linear"},
    {"kind": "performer", "num_features": 5},
    {"kind": "reformer", "num_buckets": 4, "num_rounds": 3, "bucket_size": 2},
    {"kind": "linformer", "rank": 3, "max_length": 37},
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel["kind"])
def test_a_model_of_any_kernel_costs_what_torch_counts(
    kernel: dict, generator: torch.Generator
) -> None:
    decoder = (
        kernel
        if kernel["kind"] in ("window", "linear", "performer", "reformer")
        else {"kind": "full"}
    )
    cross = kernel if kernel["kind"] in ("linear", "performer", "linformer") else {"kind": "full"}
    model = make(
        generator,
        dim=8,
        encoder={"layers": 2, "heads": 2, "attention": kernel},
        decoder={"layers": 2, "heads": 2, "attention": decoder, "cross_attention": cross},
    )
    batch = padded_batch(draw_pairs([(30, 22)], VOCAB, generator))
    description = describe(model, source_length=31, target_length=23)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        batch.logits(model)
    assert counter.get_total_flops() == description.forward_flops


def test_a_window_costs_what_it_sees_and_not_the_square(generator: torch.Generator) -> None:
    window = make(
        generator,
        encoder={"layers": 1, "heads": 2, "attention": {"kind": "window", "left": 16, "right": 16}},
    )
    full = make(generator)

    def of_encoder(model: EncoderDecoder, length: int) -> int:
        parts = describe(model, source_length=length, target_length=3).parts
        return next(part.source_flops for part in parts if part.name == "encoder_attention")

    assert of_encoder(window, 8192) == 2 * of_encoder(window, 4096)
    assert of_encoder(full, 8192) > 3.9 * of_encoder(full, 4096)
    assert of_encoder(window, 8192) < of_encoder(full, 8192) / 100


def test_a_memory_that_does_not_grow_is_no_cost_of_a_token(generator: torch.Generator) -> None:
    plain = describe(make(generator)).memory
    # Keys and values, room for twice left + 1 positions.
    for kernel, kept in (
        (
            {"kind": "window", "left": 4, "right": 4},
            2 * 2 * 5 * 6,
        ),
        ({"kind": "linear"}, 3 * 2 * 8),  # 3 heads, 2 features, 2 values and a one, rounded up to 8
    ):
        decoder = {"layers": 2, "heads": 3, "attention": kernel}
        memory = describe(make(generator, decoder=decoder)).memory
        assert (memory.cache_per_target_token, memory.cache_fixed) == (0, 2 * 4 * kept)
        assert memory.cache_per_source_token == plain.cache_per_source_token


def test_the_cache_is_what_the_decoder_allocates(generator: torch.Generator) -> None:
    from headwise.models.transformer_stepper import TransformerStepper

    model = make(generator)
    state = TransformerStepper(model).start([[4, 5, 6]], width=1, max_length=12)
    allocated = sum(cache.keys.nbytes + cache.values.nbytes for cache in state.caches)
    of_source = sum(k.nbytes + v.nbytes for k, v in state.sources)
    memory = describe(model).memory
    assert allocated == 13 * memory.cache_per_target_token
    assert of_source == 4 * memory.cache_per_source_token


def test_the_parts_add_up(generator: torch.Generator) -> None:
    description = describe(make(generator))
    _, headings, rows = description.tables()[0]
    assert headings[0] == "part"
    assert rows[-1][0] == "all"
    for column, total in enumerate(rows[-1][1:], start=1):
        assert sum(int(row[column].replace(",", "")) for row in rows[:-1]) == int(
            total.replace(",", "")
        )
    assert rows[-1][1] == f"{description.parameters:,}"


def test_the_tables_speak_both_languages(generator: torch.Generator) -> None:
    description = describe(make(generator), source_length=7, target_length=5)
    english = description.tables()
    use_language("zh")
    chinese = description.tables()
    assert [title for title, _, _ in english] == [
        "Parts",
        "Memory",
        "One pair of sentences (7 + 5 tokens)",
    ]
    for (title, headings, rows), (other_title, other_headings, other_rows) in zip(
        english, chinese, strict=True
    ):
        assert title != other_title
        assert headings[0] != other_headings[0]
        assert all(len(row) == len(headings) for row in rows)
        assert all(
            row[0] != other[0] and row[1:] == other[1:]
            for row, other in zip(rows, other_rows, strict=True)
        )


def test_plain_data_survives_json(generator: torch.Generator) -> None:
    description = describe(make(generator))
    data = json.loads(json.dumps(description.as_dict()))
    assert data["parameters"] == description.parameters
    assert [part["name"] for part in data["parts"]] == [part.name for part in description.parts]
    assert data["memory"]["training"] == 16 * data["parameters"]
