"""A reversed tokenizer against the one inside; pairs that remember the order."""

from dataclasses import replace
from pathlib import Path

import pytest

from headwise.data.pairs.preparation import describe_inputs, prepare_data
from headwise.decoding.rules.phrases import encode_phrases
from headwise.decoding.search.beam import BeamSettings
from headwise.errors import CheckpointError, UsageError
from headwise.exporting.ctranslate2_export import export_translator
from headwise.pocket import sentences
from headwise.tasks.translation.bundle import load_translator_bundle
from headwise.text.choices import (
    SentencePieceSettings,
    learn_tokenizers,
    load_fitting_tokenizers,
)
from headwise.text.reversed_tokenizer import ReversedTokenizer, as_written, in_order
from headwise.text.tokenizer_pair import PAIR_FILE
from tests.tasks.tiny import tiny_recipe

TEXTS = [one.text("de") for one in sentences("test", 7)]


@pytest.mark.parametrize("shared", [True, False])
def test_prepared_targets_are_turned_round(tmp_path: Path, shared: bool) -> None:
    size = "{kind: sentencepiece, size: 300, byte_fallback: false, coverage: 1.0, shared: "
    changes = [f"text={size}{str(shared).lower()}}}", "model.embedding.tied=output"]
    plain = tiny_recipe(*changes)
    turned = tiny_recipe(*changes, "data.target_order=reversed")
    first = prepare_data(plain.data, plain.text, tmp_path / "plain")
    second = prepare_data(turned.data, turned.text, tmp_path / "turned")
    assert len(first.train) == len(second.train)
    for number in range(0, len(first.train), 37):
        assert first.train.source(number).tolist() == second.train.source(number).tolist()
        written, turned_round = first.train.target(number), second.train.target(number)
        assert written.tolist() == turned_round.tolist()[::-1]
    inside = first.tokenizers.target
    target = second.tokenizers.target
    assert isinstance(target, ReversedTokenizer)
    for text, ids in zip(TEXTS, target.encode_batch(TEXTS), strict=True):
        assert ids == target.encode(text) == inside.encode(text)[::-1]
        assert target.decode(ids) == inside.decode(ids[::-1]) == text
    assert (target.size, target.surfaces()) == (inside.size, inside.surfaces())
    assert describe_inputs(plain.data, plain.text) != describe_inputs(turned.data, turned.text)


def test_a_damaged_order_is_noticed(tmp_path: Path) -> None:
    recipe = tiny_recipe("data.target_order=reversed")
    prepare_data(recipe.data, recipe.text, tmp_path)
    file = tmp_path / "tokenizers" / PAIR_FILE
    file.write_text(file.read_text("utf-8").replace("reversed", "sideways"), "utf-8")
    with pytest.raises(CheckpointError, match="a required entry is missing"):
        load_fitting_tokenizers(tmp_path / "tokenizers", SentencePieceSettings())


def test_the_export_refuses_a_reversed_model(tmp_path: Path, tiny_run: Path) -> None:
    bundle = load_translator_bundle(tiny_run)
    target = in_order(bundle.tokenizers.target, "reversed")
    turned = replace(bundle, tokenizers=replace(bundle.tokenizers, target=target))
    with pytest.raises(UsageError, match="CTranslate2 would write its sentences reversed"):
        export_translator(turned, tmp_path / "out")


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
@pytest.mark.parametrize("shared", [True, False])
def test_a_tag_is_one_piece(algorithm: str, shared: bool) -> None:
    lines = [one.text("en") for one in sentences("train", 300)]
    settings = SentencePieceSettings(size=400, algorithm=algorithm, shared=shared)  # type: ignore[arg-type]
    marked = [f"<bt> {line}" if number % 2 else line for number, line in enumerate(lines)]
    pair = learn_tokenizers(settings, marked, lines, tags=["<bt>", "<never-seen>"])
    for tag in ("<bt>", "<never-seen>"):
        (number,) = pair.source.encode(tag)
        ids = pair.source.encode(f"{tag} The cat sleeps.")
        assert ids[0] == number
        assert ids == pair.source.encode_batch([f"{tag} The cat sleeps."])[0]
        assert pair.source.decode(ids) == f"{tag} The cat sleeps."
    assert (len(pair.target.encode("<bt>")) == 1) == shared


def test_phrases_are_refused(translator) -> None:
    target = in_order(translator.tokenizers.target, "reversed")
    assert as_written(target) is translator.tokenizers.target
    assert in_order(target, "written") is as_written(target)
    assert encode_phrases(BeamSettings(), target).rules is None
    for given in ({"prefix": "Der"}, {"forbidden": ("Hund",)}, {"required": ("Hund",)}):
        with pytest.raises(UsageError, match="this model writes from right to left"):
            encode_phrases(BeamSettings(**given), target)
