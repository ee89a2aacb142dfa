from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from headwise.errors import CheckpointError, DataError, SettingsError, UsageError
from headwise.models.inference import Precision
from headwise.pocket import sentences
from headwise.tasks.translation.attention_trace import AttentionTrace, align_pieces
from headwise.tasks.translation.bundle import load_translator_bundle
from headwise.tasks.translation.translator import Translator
from tests.tasks.tiny import train_tiny

TEXTS = [sentence.text("en") for sentence in sentences("test", 23)]


def test_one_result_for_each_text_in_order_and_empty_stays_empty(translator: Translator) -> None:
    texts = ["", TEXTS[3], "   ", TEXTS[5], TEXTS[3]]
    results = translator(texts)
    assert [result.source for result in results] == texts
    assert [result.text == "" for result in results] == [True, False, True, False, False]
    assert results[1].text == results[4].text == str(results[1])
    assert translator([]) == []


@pytest.mark.parametrize(
    "change", [[], ["kind=beam", "size=3", "max_length.extra=3", "max_length.factor=0.5"]]
)
def test_what_else_is_in_the_batch_changes_nothing(
    translator: Translator, change: list[str]
) -> None:
    decoding = translator.settings(change)
    together = translator(TEXTS, decoding)
    for text, result in zip(TEXTS, together, strict=True):
        alone = translator([text], decoding)[0]
        assert alone.text == result.text
        assert alone.score == pytest.approx(result.score, abs=1e-5)


@pytest.mark.parametrize("precision", ["auto", "fp32"])
def test_fp32_forms_translate_as_the_plain_modules_do(tiny_run: Path, precision: Precision) -> None:
    bundle = load_translator_bundle(tiny_run)
    forms = Translator(bundle, device="cpu", precision=precision)
    plain = Translator(bundle, device="cpu")
    plain.model = bundle.model
    for change in ([], ["kind=beam", "size=3"]):
        expected, found = (one(TEXTS, one.settings(change)) for one in (plain, forms))
        assert [one.text for one in found] == [one.text for one in expected]
        assert [one.score for one in found] == pytest.approx(
            [one.score for one in expected], abs=1e-5
        )


@pytest.mark.parametrize("precision", ["fp16", "bf16", "int8"])
def test_rounded_forms_score_nearly_the_same(
    translator: Translator, tiny_run: Path, precision: Precision
) -> None:
    try:
        rounded = Translator.load(tiny_run, device="cpu", precision=precision)
    except UsageError as error:
        pytest.skip(str(error))
    assert rounded.form.name == precision
    # The words are given but for the last: only scores differ.
    prefix = [
        "prefix=Die Katze",
        "max_length=6",
    ]
    expected, found = (one(TEXTS, one.settings(prefix)) for one in (translator, rounded))
    assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=0.1)
    assert rounded([TEXTS[0]], attention=True)[0].attention is not None


def test_a_form_that_is_slower_than_it_could_be_is_noted(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        "headwise.models.inference._refusal", lambda make, tolerance: "operator not found"
    )
    assert Translator.load(tiny_run, device="cpu").form.name == "plain"
    assert "slower: oneDNN cannot be used here (operator not found)" in caplog.text


def test_scores_come_best_first_and_are_sums_of_logarithms(translator: Translator) -> None:
    changes = ["kind=beam", "size=5", "num_best=5", "max_length.factor=0.5"]
    result = translator([TEXTS[0]], translator.settings(changes))[0]
    assert len(result.n_best) == 5
    assert all(left.score >= right.score for left, right in pairwise(result.n_best))
    assert all(candidate.log_probability < 0 for candidate in result.n_best)
    assert result.score == result.n_best[0].score


def test_alignment_and_attention_on_request(translator: Translator) -> None:
    plain, full, empty = (
        translator(TEXTS[:1])[0],
        *translator([TEXTS[0], ""], alignment=True, attention=True),
    )
    assert plain.alignment is None
    assert plain.attention is None
    assert full.text == plain.text
    assert empty.alignment == ()
    trace = full.attention
    assert trace is not None
    assert full.alignment is not None
    source, target = len(trace.source_pieces), len(trace.target_pieces)
    shapes = {name: weights.shape for name, weights in trace.maps.items()}
    assert shapes == {
        "encoder.0.self": (2, source, source),
        "decoder.0.self": (2, target, target),
        "decoder.0.cross": (2, target, source),
        "decoder.1.self": (2, target, target),
        "decoder.1.cross": (2, target, source),
    }
    for weights in trace.maps.values():
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-5)
    assert [link[1] for link in full.alignment] == list(range(target - 1)), (
        "one link for each target piece"
    )
    assert all(0 <= link[0] < source - 1 for link in full.alignment)
    assert full.as_dict()["source_pieces"][-1] == "</s>"


def test_the_traced_decoder_does_not_look_ahead(translator: Translator) -> None:
    ids = translator.tokenizers.source.encode(TEXTS[1])
    trace = translator.trace(ids, ids[:7])
    assert trace.target_input_pieces[0] == "<s>"
    for name in ("decoder.0.self", "decoder.1.self"):
        assert np.triu(trace.maps[name][0], k=1).max() == 0.0


@pytest.mark.parametrize(("num_layers", "read"), [(1, 0), (2, 1), (3, 2), (4, 2), (6, 4)])
def test_links_follow_the_last_layer_of_a_shallow_decoder_and_the_one_before_it_of_a_deep_one(
    num_layers: int, read: int
) -> None:
    telling, even = np.zeros((1, 3, 4), np.float32), np.ones((1, 3, 4), np.float32)
    telling[0, 0, 2], telling[0, 1, 0] = 0.9, 0.8
    telling[0, :, 3] = 1.0  # the end of the source is no word
    maps = {
        f"decoder.{number}.cross": telling if number == read else even
        for number in range(num_layers)
    }
    trace = AttentionTrace(("a", "b", "c", "</s>"), ("<s>", "x", "y"), ("x", "y", "</s>"), maps)
    assert align_pieces(trace) == ((2, 0), (0, 1))


def test_control_characters_from_byte_pieces_do_not_reach_the_terminal(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        type(translator.tokenizers.target), "decode", lambda self, ids: "a\nb\r\nc\x1b[2J é"
    )
    assert translator(TEXTS[:1])[0].text == "a b  c [2J é"


def test_a_stream_is_read_as_it_goes(translator: Translator) -> None:
    read: list[str] = []

    def texts() -> Iterator[str]:
        for text in TEXTS * 5:
            read.append(text)
            yield text

    stream = translator.stream(texts(), translator.settings(["batching.window=17"]))
    assert next(stream).source == TEXTS[0]
    assert len(read) <= 2 * 17, "a window, not the file"


def test_settings_are_those_of_the_recipe_with_changes(translator: Translator) -> None:
    assert translator.settings() == translator.recipe.decoding
    assert translator.settings(["kind=beam", "size=7"]).model_dump()["size"] == 7
    with pytest.raises(SettingsError, match=r"decoding.sizee: unknown key; did you mean 'size'"):
        translator.settings(["kind=beam", "sizee=7"])
    with pytest.raises(SettingsError, match="'size' is not an override"):
        translator.settings(["size"])


def test_one_text_is_not_a_list_of_letters(translator: Translator) -> None:
    with pytest.raises(UsageError, match=r"write translator\(\[text\]\)"):
        translator("The cat sleeps.")


def test_the_pair_is_known(translator: Translator) -> None:
    assert (translator.source_language, translator.target_language) == ("en", "de")


def test_nothing_is_loaded_from_what_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is not a model"):
        Translator.load(tmp_path)


def test_a_sentence_too_long_is_refused_by_its_number(translator: Translator) -> None:
    with pytest.raises(
        DataError, match=r"sentence 2 of the input has [\d,]+ tokens, at most 2,048"
    ):
        translator(["The dog is old.", "dog " * 3000])


def test_outputs_stay_within_learned_positions(tmp_path: Path) -> None:
    train_tiny(
        tmp_path / "run", ["model.position={kind: learned, max_length: 64}", "data.test=null"]
    )
    learned = Translator.load(tmp_path / "run")
    decoding = learned.settings(["max_length=99", "min_length=70"])
    assert len(learned(["The dog is old."], decoding)) == 1
    with pytest.raises(DataError, match=r"at most 64"):
        learned(["dog " * 99])


def test_what_attention_cannot_read_is_refused_before_it_is_asked(tmp_path: Path) -> None:
    changes = [
        "model.encoder.attention={kind: linformer, rank: 4, max_length: 64}",
        "data.test=null",
        "training.steps=1",
    ]
    train_tiny(tmp_path / "run", changes)
    summed = Translator.load(tmp_path / "run")
    summed.model.encode = None  # type: ignore[method-assign]
    with pytest.raises(
        DataError,
        match=r"sentence 1 of the input has \d+ tokens, at most 64 "
        r".*encoder\.attention\.max_length=64",
    ) as caught:
        summed(["dog " * 99])
    assert "or with model.encoder.attention.kind=fused, without a limit" in str(caught.value)


@pytest.mark.parametrize("wrong", [b"abc", 5, None, [None], [b"x"]])
def test_what_is_not_a_list_of_texts_is_refused(translator: Translator, wrong: object) -> None:
    with pytest.raises(UsageError, match="a list of texts is needed"):
        translator(wrong)  # type: ignore[arg-type]


def test_a_mapping_is_no_decoding(translator: Translator) -> None:
    with pytest.raises(UsageError, match="the decoding given is a dict"):
        translator(["a"], {"kind": "beam"})  # type: ignore[arg-type]
