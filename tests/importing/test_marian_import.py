"""An imported Marian model beside transformers: ids, logits, beams, scores; and what is refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from headwise.errors import CheckpointError, HeadwiseError, SettingsError, UsageError
from headwise.importing.marian_files import read_marian_files
from headwise.importing.marian_import import describe_import, import_marian
from headwise.importing.marian_network import row_order
from headwise.tasks.run import train
from headwise.tasks.translation.bundle import load_translator_bundle
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.translator import Translator
from headwise.text.tokenizer import BOS, EOS, NUM_SPECIAL
from tests.importing.marian import Peer, load_peer, write_marian

STRANGE = (
    "  two  spaces, 𝔘𝔫𝔦 😀 and ▁ marks",
    "ＡＢＣ１２３，全角",
    ">>deu<< 它太累了。",
    ">>xyz<< 它太累了。",
    "the 猫 sat; ß ü é",
    "</s> <unk> <pad>",
)


def ids_here(translator: Translator, text: str, order: list[int]) -> list[int]:
    """Our ids as Marian numbers them."""
    return [order[number] for number in translator.tokenizers.source.encode(text)]


def orders(directory: Path) -> list[list[int]]:
    files = read_marian_files(directory)
    return [row_order(files, pieces) for pieces in files.lists]


@torch.no_grad()
def logits_of(
    translator: Translator, peer: Peer, directory: Path, source: str, target: str
) -> tuple[Tensor, Tensor]:
    """Logits of all tokens but padding after every prefix of a target: ours, theirs."""
    network, tokenizer = peer
    own = translator.tokenizers
    given = tokenizer([source], text_target=[target], return_tensors="pt")
    start = network.config.decoder_start_token_id
    prefix = torch.cat([torch.tensor([[start]]), given.labels[:, :-1]], dim=1)
    theirs = network(**{**given, "labels": None}, decoder_input_ids=prefix).logits[0]
    tokens = torch.tensor([[*own.source.encode(source), EOS]])
    before = torch.tensor([[BOS, *own.target.encode(target)]])
    hidden = translator.model(
        tokens,
        before,
        source_segment=torch.ones_like(tokens),
        target_segment=torch.ones_like(before),
        source_position=torch.arange(tokens.shape[1])[None],
        target_position=torch.arange(before.shape[1])[None],
    )
    order = torch.tensor(orders(directory)[1])
    return translator.model.output(hidden)[0, :, EOS:], theirs[:, order[EOS:]]


def generate(peer: Peer, texts: list[str]) -> tuple[list[str], list[float]]:
    network, tokenizer = peer
    given = tokenizer(texts, return_tensors="pt", padding=True)
    with torch.no_grad():
        found = network.generate(**given, return_dict_in_generate=True, output_scores=True)
    return (
        tokenizer.batch_decode(found.sequences, skip_special_tokens=True),
        found.sequences_scores.tolist(),
    )


def test_the_ids_are_the_same(translator: Translator, peer: Peer, marian: Path) -> None:
    order = orders(marian)[0]
    for text in ("它太累了。", "动物没有过马路，因为它太累了。", *STRANGE[:5]):
        expected = peer[1](text).input_ids[:-1]
        if text.startswith(">>xyz"):  # no code of this model: we read it as text
            continue
        assert ids_here(translator, text, order) == expected, text


def test_special_tokens_in_a_text_are_text(translator: Translator) -> None:
    """transformers would take them for tokens; a text cannot end the sentence here."""
    ids = translator.tokenizers.source.encode(STRANGE[-1])
    assert EOS not in ids
    assert 0 not in ids


def test_the_logits_are_the_same(
    translator: Translator, peer: Peer, marian: Path, texts: list[str]
) -> None:
    for text in texts[:20]:
        ours, theirs = logits_of(translator, peer, marian, text, "the cat was tired.")
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def test_two_hundred_beams_are_the_same(
    translator: Translator, peer: Peer, texts: list[str]
) -> None:
    expected, scores = generate(peer, texts)
    found = translator(texts)
    assert [one.text for one in found] == expected
    assert [one.score for one in found] == pytest.approx(scores, rel=1e-4, abs=1e-5)
    assert len({len(text) for text in expected}) > 10, "worth something if lengths vary"


@pytest.mark.parametrize(
    ("changes", "tied"),
    [
        ({"separate": True}, "output"),
        ({"activation_function": "relu"}, "all"),
        ({"activation_function": "gelu", "scale_embedding": False}, "all"),
    ],
)
def test_other_forms(changes: dict[str, Any], tied: str, tmp_path: Path, texts: list[str]) -> None:
    directory = write_marian(tmp_path / "model", **changes)
    import_marian(directory, tmp_path / "bundle")
    translator, peer = Translator.load(tmp_path / "bundle"), load_peer(directory)
    assert translator.recipe.model.embedding.tied == tied
    ours, theirs = logits_of(translator, peer, directory, texts[0], "the cat.")
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    assert [one.text for one in translator(texts[:20])] == generate(peer, texts[:20])[0]


def test_padding_may_stand_outside_the_softmax(
    marian: Path, tmp_path: Path, texts: list[str]
) -> None:
    directory = tmp_path / "model"
    shutil.copytree(marian, directory)
    change_json(
        directory / "generation_config.json", renormalize_logits=True, no_repeat_ngram_size=0
    )
    import_marian(directory, tmp_path / "bundle")
    expected, scores = generate(load_peer(directory), texts[:30])
    found = Translator.load(tmp_path / "bundle")(texts[:30])
    assert [one.text for one in found] == expected
    assert [one.score for one in found] == pytest.approx(scores, rel=1e-4, abs=1e-5)


def test_a_prefix_stands_before_every_source(marian: Path, tmp_path: Path) -> None:
    found = import_marian(marian, tmp_path / "bundle", prefix=">>deu<<")
    assert "--prefix" not in describe_import(found)
    source = load_translator_bundle(tmp_path / "bundle").tokenizers.source
    plain = source.encode("它太累了。")
    assert source.pieces(plain)[0] == ">>deu<<"
    assert source.encode(">>deu<<它太累了。") == plain
    assert source.pieces(source.encode(">>eng<<它太累了。"))[0] == ">>eng<<"
    assert source.encode("") == []


def test_the_recipe_says_everything(imported: Path, marian: Path) -> None:
    bundle = load_translator_bundle(imported)
    recipe, given = bundle.recipe, json.loads((marian / "config.json").read_text())
    assert (recipe.data.source, recipe.data.target, recipe.data.train) == ("zh", "en", ())
    assert recipe.text.kind == "imported_pieces"
    assert recipe.text.size == bundle.tokenizers.target.size == given["vocab_size"] + 1
    assert recipe.model.feed_forward.kind == "silu"
    assert recipe.model.norm.place == "after"
    decoding = recipe.decoding
    assert (decoding.kind, decoding.size, decoding.max_length) == ("beam", 4, 23)
    assert (decoding.at_limit, decoding.no_repeat_ngrams) == ("end", 1)


def test_training_needs_data(imported: Path, tmp_path: Path) -> None:
    recipe = load_translator_bundle(imported).recipe
    with pytest.raises(SettingsError, match=r"data\.train names no corpus"):
        train(recipe, run=tmp_path / "run")
    data = recipe.model_dump(mode="json")
    data["data"]["train"] = ["pocket:train:300"]
    with pytest.raises(SettingsError, match="not learnt from text; name that model"):
        train(TranslationRecipe.model_validate(data), run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_decoded_text_may_hold_pieces_of_the_other_language(translator: Translator) -> None:
    target = translator.tokenizers.target
    for number in range(NUM_SPECIAL, target.size, 7):
        assert "▁" not in target.decode([number])
    assert target.decode([]) == ""
    with pytest.raises(UsageError, match="is not in the vocabulary"):
        target.decode([target.size])


def change_json(path: Path, **changes: Any) -> None:
    data = json.loads(path.read_text(encoding="utf-8")) | changes
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


def pickle_only(directory: Path) -> None:
    (directory / "model.safetensors").rename(directory / "pytorch_model.bin")


def change_list(directory: Path) -> None:
    data = json.loads((directory / "vocab.json").read_text(encoding="utf-8"))
    data["one more"] = len(data)
    (directory / "vocab.json").write_text(json.dumps(data), encoding="utf-8")


def forget(name: str, key: str) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        data = json.loads((directory / name).read_text(encoding="utf-8"))
        data.pop(key)
        (directory / name).write_text(json.dumps(data), encoding="utf-8")

    return change


REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "pickle": (pickle_only, r"only as pytorch_model.bin.*MarianMTModel.*save_pretrained"),
    "no weights": (lambda d: (d / "model.safetensors").unlink(), "model.safetensors is missing"),
    "no pieces": (lambda d: (d / "source.spm").unlink(), "source.spm is missing"),
    "no list": (lambda d: (d / "vocab.json").unlink(), "vocab.json is missing"),
    "another model": (lambda d: change_json(d / "config.json", model_type="t5"), "type 't5'"),
    "activation": (
        lambda d: change_json(d / "config.json", activation_function="tanh"),
        "activation_function is 'tanh', but only relu, gelu",
    ),
    "two widths": (lambda d: change_json(d / "config.json", decoder_ffn_dim=41), "decoder_ffn_dim"),
    "no width": (forget("config.json", "d_model"), "has no number 'd_model'"),
    "heads": (lambda d: change_json(d / "config.json", encoder_attention_heads=5), "encoder.heads"),
    "layers": (lambda d: change_json(d / "config.json", encoder_layers=1), "does not speak of"),
    "more layers": (lambda d: change_json(d / "config.json", encoder_layers=3), "is missing"),
    "width": (lambda d: change_json(d / "config.json", encoder_ffn_dim=41, decoder_ffn_dim=41),
              "does not fit this model"),
    "list": (change_list, "rows for a list of"),
    "no end": (forget("vocab.json", "</s>"), "is no list of pieces"),
    "list of lists": (lambda d: (d / "vocab.json").write_text("[1]"), "is no list of pieces"),
    "not JSON": (lambda d: (d / "config.json").write_text("{"), "not readable JSON"),
    "not an object": (lambda d: (d / "config.json").write_text("3"), "is no JSON object"),
    "bad pieces": (lambda d: (d / "target.spm").write_bytes(b"x"), "is not a sentencepiece model"),
    "bad weights": (lambda d: (d / "model.safetensors").write_bytes(b"x"), "safetensors file"),
    "banned": (
        lambda d: change_json(d / "generation_config.json", bad_words_ids=[[5]]),
        "bad_words_ids forbids other tokens",
    ),
    "renormalised": (
        lambda d: change_json(d / "generation_config.json", renormalize_logits=True),
        "cannot be imported together",
    ),
    "search": (lambda d: change_json(d / "generation_config.json", num_beams=-1), "size"),
    "no language": (lambda d: (d / "tokenizer_config.json").unlink(), "does not say its languages"),
    "start": (lambda d: change_json(d / "config.json", decoder_start_token_id=10**6), "below"),
    "end": (lambda d: change_json(d / "config.json", eos_token_id=3), "eos_token_id is 3"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_imported_is_refused(case: str, marian: Path, tmp_path: Path) -> None:
    directory = tmp_path / "model"
    shutil.copytree(marian, directory)
    change, message = REFUSED[case]
    change(directory)
    with pytest.raises(HeadwiseError, match=message) as caught:
        import_marian(directory, tmp_path / "bundle")
    assert caught.value.exit_status in (2, 3)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_table_of_positions_is_compared(marian: Path, tmp_path: Path) -> None:
    from headwise.positions.sinusoidal import sinusoidal_table
    from headwise.weights import read_tensors, write_tensors

    directory = tmp_path / "model"
    shutil.copytree(marian, directory)
    weights, table = (
        read_tensors(directory / "model.safetensors"),
        sinusoidal_table(64, 24, layout="halves"),
    )
    name = "model.encoder.embed_positions.weight"
    write_tensors(directory / "model.safetensors", weights | {name: table})
    import_marian(directory, tmp_path / "bundle")
    write_tensors(directory / "model.safetensors", weights | {name: table.flip(1)})
    with pytest.raises(CheckpointError, match="not the table of sinusoids"):
        import_marian(directory, tmp_path / "another")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prefix": ">>fra<<"}, "choose one of the model's codes: >>eng<<, >>deu<<"),
        ({"source": "z h"}, "is no language code"),
        ({"source": "en"}, "source and target are both 'en'"),
    ],
)
def test_options_that_do_not_fit(
    options: dict[str, str], message: str, marian: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        import_marian(marian, tmp_path / "bundle", **options)
    with pytest.raises(UsageError, match="exists already"):
        import_marian(marian, marian)
    assert not (tmp_path / "bundle").exists()


def test_a_prefix_needs_codes(tmp_path: Path) -> None:
    directory = write_marian(tmp_path / "model", separate=True)
    with pytest.raises(UsageError, match="has no codes; leave --prefix out"):
        import_marian(directory, tmp_path / "bundle", prefix=">>deu<<")
