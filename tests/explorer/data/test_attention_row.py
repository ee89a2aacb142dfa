"""One row opened up: the model's own weights and output, reached by the written steps."""

import math
from pathlib import Path

import pytest
import torch

from headwise.errors import UsageError
from headwise.explorer.data.attention_maps import MapKind
from headwise.explorer.data.attention_row import calculate_row, count_layers
from headwise.explorer.data.translation_maps import trace_translation
from headwise.models.choices import build_model
from headwise.tasks.translation.bundle import TranslatorBundle
from headwise.tasks.translation.translator import Translator
from headwise.text.choices import learn_tokenizers
from tests.tasks.tiny import tiny_recipe

LINES = ("The animal is tired .", "It did not cross the street .", "The old dog was too wide ?")
TEXT = "The animal did not cross the street ."


def make_translator(*overrides: str) -> Translator:
    """Untrained, in memory: what is opened up does not depend on what was learned."""
    recipe = tiny_recipe("text={kind: words, size: 64, shared: true}", *overrides)
    tokenizers = learn_tokenizers(recipe.text, LINES, LINES)
    size = tokenizers.source.size
    generator = torch.Generator().manual_seed(5)
    model = build_model(recipe.model, source_size=size, target_size=size, generator=generator)
    return Translator(TranslatorBundle(Path("tiny"), recipe, tokenizers, model, {}), device="cpu")


@pytest.fixture(scope="module")
def translator() -> Translator:
    return make_translator()


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self", "cross"])
def test_the_steps_lead_to_the_models_weights(translator: Translator, kind: MapKind) -> None:
    trace = trace_translation(translator, TEXT)
    own = trace.map_of(kind, layer=0).weights[1, 2]
    row = calculate_row(translator, TEXT, kind=kind, layer=0, head=1, query=2)
    assert row.weights == pytest.approx(own.tolist(), abs=1e-6)
    assert (row.query_pieces, row.key_pieces) == (trace.query_pieces(kind), trace.key_pieces(kind))
    assert row.is_softmax
    assert row.exponentials is not None
    for place, key in enumerate(row.keys):
        assert row.products[place] == pytest.approx(
            sum(q * k for q, k in zip(row.q, key, strict=True)), abs=1e-6
        )
        assert row.scores[place] == pytest.approx(
            row.products[place] / math.sqrt(row.head_dim), abs=1e-9
        )
    total = sum(row.exponentials)
    assert [number / total for number in row.exponentials] == pytest.approx(row.weights, abs=1e-5)
    mixed = [
        sum(w * v[place] for w, v in zip(row.weights, row.values, strict=True))
        for place in range(row.head_dim)
    ]
    assert row.output == pytest.approx(mixed, abs=1e-5)
    assert row.visible == [
        kind != "decoder_self" or place <= 2 for place in range(len(row.key_pieces))
    ]


def test_a_bias_and_a_pattern_join_the_steps() -> None:
    row = calculate_row(
        make_translator("model.position={kind: alibi}"),
        TEXT,
        kind="encoder_self",
        layer=0,
        head=1,
        query=3,
    )
    assert row.bias is not None
    assert row.is_softmax
    assert row.bias[3] == 0
    assert row.scores[0] == pytest.approx(row.products[0] / math.sqrt(row.head_dim) + row.bias[0])
    window = make_translator("model.encoder.attention={kind: window, left: 1, right: 1}")
    row = calculate_row(window, TEXT, kind="encoder_self", layer=0, query=3)
    assert row.is_softmax
    assert [place for place, seen in enumerate(row.visible) if seen] == [2, 3, 4]


def test_a_kernel_that_is_no_softmax_says_so() -> None:
    row = calculate_row(
        make_translator("model.encoder.attention={kind: linear}"),
        TEXT,
        kind="encoder_self",
        layer=0,
    )
    assert not row.is_softmax
    assert row.exponentials is None
    assert sum(row.weights) == pytest.approx(1.0, abs=1e-4)


def test_another_target_may_be_read(translator: Translator) -> None:
    row = calculate_row(
        translator, TEXT, target="the dog was tired", kind="cross", layer=-1, query=4
    )
    assert row.query_pieces[-1] == "</s>"
    assert len(row.query_pieces) == 5
    assert count_layers(translator)["cross"] == len(translator.model.decoder)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"layer": 7}, "layer 7 was asked for; choose 0 to"),
        ({"head": 99}, "head 99 was asked for; choose 0 to"),
        ({"query": 400}, "query 400 was asked for; choose 0 to"),
        ({"target": "tired " * 600}, "tokens 601 was asked for; choose 1 to 513"),
    ],
)
def test_what_is_not_there_is_refused(
    translator: Translator, choice: dict[str, int], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        calculate_row(translator, TEXT, **choice)


def test_it_is_refused_before_the_model_works(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*_: object, **__: object) -> None:
        raise AssertionError("the model was asked")

    monkeypatch.setattr("headwise.decoding.stepper_search.decode", work)
    with pytest.raises(UsageError, match="tokens 601 was asked for; choose 1 to 513"):
        calculate_row(translator, "tired " * 600)
    with pytest.raises(UsageError, match="layer 7 was asked for"):
        calculate_row(translator, TEXT, layer=7)
    with pytest.raises(UsageError, match="query 40 was asked for"):
        calculate_row(translator, TEXT, kind="encoder_self", query=40)


def test_nothing_and_recurrent_models_are_refused(translator: Translator) -> None:
    with pytest.raises(UsageError, match="the text is empty"):
        calculate_row(translator, "  ")
    with pytest.raises(UsageError, match="rows are opened up in a Transformer"):
        calculate_row(make_translator("model={kind: recurrent, dim: 8}"), TEXT)
