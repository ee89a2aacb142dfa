"""Costs of translators part by part: worked by hand, and torch's own counter of operations."""

import json
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from headwise.inspecting.description import LayerDescription
from headwise.inspecting.part_costs import PartCost, count_parts
from headwise.language import use_language
from headwise.models.decoder_cache import count_decoder_cache
from headwise.tasks.planned_step import PlannedStep, Vocabularies
from headwise.tasks.recipe import recipe_from
from headwise.tasks.shape_only_modules import make_contentless
from headwise.tasks.translation.losses import plan_step
from headwise.tasks.translation.recipe import TranslationRecipe
from tests.tasks.tiny import tiny_recipe

FULL = {"kind": "full"}
TRANSFORMER = {
    "kind": "encoder_decoder",
    "dim": 6,
    "encoder": {"layers": 1, "heads": 2, "attention": FULL},
    "decoder": {"layers": 2, "heads": 3, "attention": FULL, "cross_attention": FULL},
    "feed_forward": {"kind": "relu", "hidden": 7},
}
RECURRENT = {"kind": "recurrent", "dim": 14, "layers": 1}


def make_step(model: dict[str, Any], size: int = 11, **changes: Any) -> PlannedStep:
    data = tiny_recipe().model_dump(mode="json")
    recipe = recipe_from({**data, "model": model, **changes})
    assert isinstance(recipe, TranslationRecipe)
    return plan_step(recipe, Vocabularies(size, size))


def find_parts(step: PlannedStep, length: int) -> dict[str, PartCost]:
    return {part.name: part for part in count_parts(step, length=length)}


def describe(step: PlannedStep, length: int) -> LayerDescription:
    parts = count_parts(step, length=length)
    return LayerDescription(length, parts, step.described, count_decoder_cache(step.build(1)))


def test_a_transformer_worked_out_by_hand() -> None:
    # dim 6, one encoder and two decoder layers, hidden 7, 11 tokens, everything tied, norm before.
    step = make_step(TRANSFORMER)
    parts = find_parts(step, 5)
    attention = 4 * 6 * 6 + 4 * 6  # 168: query, key, value, output with their biases
    feed_forward = 2 * 6 * 7 + 7 + 6  # 97
    norm = 2 * 6
    parameters = {name: part.parameters for name, part in parts.items()}
    assert parameters == {
        "source_embedding.table": 66,
        "encoder.*.self_attention": attention,
        "encoder.*.feed_forward": feed_forward,
        "encoder.*.attention_residual": norm,
        "encoder.*.feed_forward_residual": norm,
        "decoder.*.self_attention": 2 * attention,
        "decoder.*.cross_attention": 2 * attention,
        "decoder.*.feed_forward": 2 * feed_forward,
        "decoder.*.attention_residual": 2 * norm,
        "decoder.*.cross_residual": 2 * norm,
        "decoder.*.feed_forward_residual": 2 * norm,
        "encoder_norm": norm,
        "decoder_norm": norm,
        "output": 0,  # tied to the embedding
    }
    flops = {name: part.flops for name, part in parts.items() if part.flops}
    of_attention = 5 * (2 * 144 + 4 * 5 * 6)  # four projections, scores and the mean of the values
    assert flops == {
        "encoder.*.self_attention": of_attention,
        "encoder.*.feed_forward": 5 * (2 * 84),
        "decoder.*.self_attention": 2 * of_attention,
        "decoder.*.cross_attention": 2 * of_attention,
        "decoder.*.feed_forward": 2 * 5 * (2 * 84),
        "output": 5 * (2 * 66),
    }
    memory = describe(step, 5).memory
    assert memory["weights_fp32"] == 4 * 1317
    assert memory["weights_bf16"] == 2 * 1317
    assert memory["training"] == 16 * 1317
    assert memory["cache_per_target_token"] == 4 * 2 * 2 * 6
    assert memory["cache_fixed"] == 0


def test_a_recurrent_translator_worked_out_by_hand() -> None:
    # dim 14, two directions of 7, LSTM (4 gates), everything tied, Luong's general score, input
    # feeding.
    luong = {"kind": "luong", "score": {"kind": "general"}}
    step = make_step({**RECURRENT, "attention": luong}, size=17)
    parts = find_parts(step, 5)
    direction = 4 * (7 * 14 + 7 * 7)
    by_title: dict[str, list[int]] = {}
    for part in parts.values():
        sums = by_title.setdefault(part.title[0], [0, 0])
        sums[0] += part.parameters
        sums[1] += part.flops
    assert by_title == {
        "embeddings": [17 * 14, 0],
        "encoder's recurrent layers": [2 * (direction + 4 * 2 * 7), 5 * 2 * 2 * direction],
        "decoder's recurrent layers": [
            4 * (14 * 28 + 14 * 14 + 2 * 14),
            5 * 2 * 4 * (14 * 28 + 14 * 14),
        ],
        # the keys of the source; the readout; scores with five keys and the mean of five states
        "attention and readout": [
            14 * 14 + 28 * 14 + 14,
            5 * 2 * 14 * 14 + 5 * (2 * 28 * 14 + 5 * (2 * 14 + 2 * 14)),
        ],
        "output": [0, 5 * 2 * 17 * 14],
    }


PARALLEL = {**TRANSFORMER, "kind": "parallel"}
MODELS: dict[str, dict[str, Any]] = {
    "gated": {
        **TRANSFORMER,
        "feed_forward": {"kind": "gated", "hidden": 5},
        "norm": {"kind": "rms", "place": "after"},
    },
    "untied": {
        **TRANSFORMER,
        "embedding": {"tied": "none"},
        "output_bias": True,
        "position": {"kind": "learned", "max_length": 200},
    },
    "no encoder": {**TRANSFORMER, "encoder": {"layers": 0, "heads": 1}},
    "draft heads": {**TRANSFORMER, "draft_heads": {"count": 3}},
    "window": {
        **TRANSFORMER,
        "encoder": {
            "layers": 2,
            "heads": 2,
            "attention": {"kind": "window", "left": 2, "right": 3},
        },
    },
    "performer": {
        **TRANSFORMER,
        "encoder": {
            "layers": 2,
            "heads": 2,
            "attention": {"kind": "performer", "num_features": 5},
        },
    },
    "fixed vector": {**RECURRENT, "attention": {"kind": "none"}},
    "Bahdanau": {**RECURRENT, "cell": "gru", "attention": {"kind": "bahdanau"}},
    "Luong, dot": {**RECURRENT, "attention": {"kind": "luong", "score": {"kind": "dot"}}},
    "length classifier": {**PARALLEL, "length": {"kind": "classifier"}},
    "fertility": {**PARALLEL, "length": {"kind": "fertility"}},
    "ctc": {**PARALLEL, "length": {"kind": "upsampled"}, "structure": {"kind": "ctc"}},
    "graph": {
        **PARALLEL,
        "length": {"kind": "upsampled"},
        "structure": {"kind": "graph", "link_heads": 3},
    },
    "crf": {**PARALLEL, "structure": {"kind": "crf", "candidates": 5, "rank": 3}},
    "edits": {**PARALLEL, "length": {"kind": "edited"}},
}


def step_of(name: str) -> PlannedStep:
    model = MODELS[name]
    if model["kind"] != "parallel":
        return make_step(model)
    training = tiny_recipe().model_dump(mode="json")["training"]
    objective = {"kind": "cross_entropy", "label_smoothing": 0.0}
    return make_step(
        model,
        decoding={"kind": "edits" if name == "edits" else "one_pass"},
        training={**training, "objective": objective},
    )


@pytest.mark.parametrize("name", MODELS)
def test_parts_have_titles_and_add_up_to_the_model_and_to_torchs_count(name: str) -> None:
    step = step_of(name)
    parts = count_parts(step, length=7)
    assert not [part.name for part in parts if set(".*_") & set(part.title[0])]
    module = step.build(1).eval()
    assert sum(part.parameters for part in parts) == sum(
        weight.numel() for weight in module.parameters()
    )
    make_contentless(module)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        step.trainable(module, step.chunk_size(1, cuda=False)).loss(step.batch(1, 7))
    assert sum(part.flops for part in parts) == counter.get_total_flops()


def test_what_a_parallel_translator_adds_is_counted() -> None:
    titles = {part.title[0]: part for part in count_parts(step_of("graph"), length=7)}
    assert titles["links"].parameters + titles["links"].flops > 0
    plain = sum(part.flops for part in count_parts(make_step(TRANSFORMER), length=7))
    assert sum(part.flops for part in count_parts(step_of("graph"), length=7)) > 2 * plain


def test_a_window_costs_what_it_sees_and_not_the_square() -> None:
    window = {"kind": "window", "left": 16, "right": 16}

    def of_encoder(kernel: dict[str, Any], length: int) -> int:
        stack = {"layers": 1, "heads": 2, "attention": kernel}
        parts = find_parts(make_step({**TRANSFORMER, "encoder": stack}), length)
        return parts["encoder.*.self_attention"].flops

    assert of_encoder(window, 8192) == 2 * of_encoder(window, 4096)
    assert of_encoder(FULL, 8192) > 3.9 * of_encoder(FULL, 4096)
    assert of_encoder(window, 8192) < of_encoder(FULL, 8192) / 100


def test_the_rows_of_the_table_add_up() -> None:
    description = describe(make_step(TRANSFORMER), 5)
    _, headings, rows = description.tables()[0]
    assert headings == ("part", "parameters", "FLOPs / pair of tokens")
    assert rows[-1][0] == "all"
    for column, total in enumerate(rows[-1][1:], start=1):
        assert sum(int(row[column].replace(",", "")) for row in rows[:-1]) == int(
            total.replace(",", "")
        )
    assert rows[-1][1] == f"{description.parameters:,}"


def test_the_tables_speak_both_languages() -> None:
    description = describe(make_step(TRANSFORMER), 5)
    english = description.tables()
    use_language("zh")
    chinese = description.tables()
    assert [title for title, _, _ in english] == [
        "Parts",
        "Memory",
        "One pair of sentences (5 + 5 tokens)",
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


def test_plain_data_survives_json() -> None:
    description = describe(make_step(TRANSFORMER), 5)
    data = json.loads(json.dumps(description.as_dict()))
    assert data["parameters"] == description.parameters
    assert [part["name"] for part in data["parts"]] == [part.name for part in description.parts]
    assert data["memory"]["training"] == 16 * data["parameters"]
