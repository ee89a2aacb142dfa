import json
import shutil
import stat
from pathlib import Path

import pytest
import torch
from benchmarks.made_data import save_untrained

from headwise.cli.main import main
from headwise.errors import CheckpointError
from headwise.storage import MANIFEST, write_manifest, write_sealed_json
from headwise.tasks.bundle_form import KIND
from headwise.tasks.labels.bundle import load_label_bundle
from headwise.tasks.language.bundle import load_language_bundle
from headwise.tasks.pretraining.contextual_vectors import load_word_reader
from headwise.tasks.pretraining.gap_filling import GapFiller, load_predictor
from headwise.tasks.recipe_files import shipped_recipes
from headwise.tasks.translation.bundle import load_translator_bundle
from headwise.text.character_tokenizer import CharacterTokenizer
from headwise.text.tokenizer_pair import TokenizerPair
from headwise.text.vocabulary import Vocabulary
from headwise.weights import read_tensors, weights_of, write_tensors


@pytest.fixture(name="copy")
def _copy(tiny_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_run / "model", tmp_path / "model"))


def test_a_bundle_reads_back_equal(tiny_run: Path, tmp_path: Path) -> None:
    first = load_translator_bundle(tiny_run / "model")
    save_untrained(
        tmp_path / "again",
        recipe=first.recipe,
        tokenizers=first.tokenizers,
        model=first.model,
        results=first.results,
    )
    second = load_translator_bundle(tmp_path / "again")
    assert second.recipe == first.recipe
    assert second.results == first.results
    assert second.tokenizers.source.encode("The cat sleeps.") == first.tokenizers.source.encode(
        "The cat sleeps."
    )
    for (name, left), (other, right) in zip(
        weights_of(first.model).items(), weights_of(second.model).items(), strict=True
    ):
        assert name == other
        assert torch.equal(left, right)
    assert not second.model.training
    manifests = [
        json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        for path in (first.directory, second.directory)
    ]
    assert manifests[0] == manifests[1], "the same bundle has the same bytes"


def test_a_run_directory_leads_to_its_bundle(tiny_run: Path) -> None:
    assert load_translator_bundle(tiny_run).directory == tiny_run / "model"


def test_every_file_may_be_read_by_whoever_may_read_the_others(tiny_run: Path) -> None:
    modes = {
        stat.S_IMODE(path.stat().st_mode)
        for path in (tiny_run / "model").rglob("*")
        if path.is_file()
    }
    assert len(modes) == 1


def test_the_model_card_is_for_people(tiny_run: Path) -> None:
    card = (tiny_run / "model" / "README.md").read_text(encoding="utf-8")
    assert "Translator en → de" in card
    assert "- test set, BLEU: " in card
    assert "- compiled by torch.compile: no" in card
    assert "_" not in card.partition("## Results")[2].partition("## Use")[0], (
        "no key of results.json"
    )
    assert "`nrefs:1|" in card
    assert "{" not in card.replace("{", "", 0).partition("## Use")[0], "no JSON in it"


def test_one_flipped_bit_in_any_file_is_noticed(copy: Path) -> None:
    files = [path for path in copy.rglob("*") if path.is_file() and path.name != MANIFEST]
    assert len(files) >= 7
    for path in files:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        with pytest.raises(
            CheckpointError, match=r"is damaged .its SHA-256 is not the one written"
        ) as caught:
            load_translator_bundle(copy)
        assert caught.value.file == path
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    load_translator_bundle(copy)


def test_a_missing_file_is_named(copy: Path) -> None:
    (copy / "weights.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"weights.safetensors: is missing"):
        load_translator_bundle(copy)


def test_a_link_to_somewhere_else_is_refused(copy: Path, tmp_path: Path) -> None:
    shutil.move(copy / "results.json", tmp_path / "results.json")
    (copy / "results.json").symlink_to(tmp_path / "results.json")
    with pytest.raises(CheckpointError, match=r"names 'results.json', which lies outside"):
        load_translator_bundle(copy)


def test_weights_of_another_model_do_not_fit(copy: Path) -> None:
    """Every checksum is right, but the recipe was changed: names and shapes are compared all the
    same."""
    recipe = (copy / "recipe.yaml").read_text(encoding="utf-8")
    (copy / "recipe.yaml").write_text(recipe.replace("hidden: 32", "hidden: 34"), encoding="utf-8")
    write_manifest(copy, kind=KIND)
    with pytest.raises(CheckpointError, match=r"does not fit this model .*instead of .34, 16"):
        load_translator_bundle(copy)


@pytest.mark.parametrize("number", [torch.nan, torch.inf])
def test_weights_that_are_not_finite_are_refused_by_every_command(
    copy: Path, number: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """The manifest is right: whoever computed such weights also wrote their checksum."""
    weights = read_tensors(copy / "weights.safetensors")
    name = "decoder.1.feed_forward.narrow.weight"
    weights[name][3, 5] = number
    write_tensors(copy / "weights.safetensors", weights)
    write_manifest(copy, kind=KIND)
    for command in (["translate", "--model", str(copy), "--text", "A dog."], ["doctor", str(copy)]):
        assert main(command) == 3
        said = capsys.readouterr()
        assert f"NaN or infinite (in {name})" in said.out + said.err


def test_what_is_no_model_says_where_one_is(tmp_path: Path) -> None:
    with pytest.raises(
        CheckpointError,
        match=r"is not a model: a bundle has a MANIFEST.json; give e.g. runs/demo/model",
    ):
        load_translator_bundle(tmp_path)


def test_the_advice_makes_a_model_of_the_kind_that_is_asked_for(tmp_path: Path) -> None:
    loaders = {
        "ptb-ngram": (load_language_bundle, load_predictor),
        "sst2": (load_label_bundle,),
        "english-elmo": (load_word_reader,),
        "english-masked": (GapFiller.load,),
    }
    for recipe, those in loaders.items():
        assert recipe in shipped_recipes()
        for load in those:
            with pytest.raises(
                CheckpointError, match=rf"give e.g. runs/{recipe} \(`headwise train {recipe} --run"
            ) as caught:
                load(tmp_path)
            assert (
                f"请给出例如 runs/{recipe}（`headwise train {recipe} --run runs/{recipe}` 会生成）"
                in caught.value.zh
            )


def change_manifest(bundle: Path, change: str, value: object = None) -> None:
    manifest = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
    if change == "format":
        manifest["format"] = value
    else:
        del manifest["files"][change]
    write_sealed_json(bundle / MANIFEST, manifest)


def test_a_file_that_is_not_listed_is_not_trusted(copy: Path) -> None:
    change_manifest(copy, "weights.safetensors")
    with pytest.raises(
        CheckpointError, match=r"weights\.safetensors: is not listed in the manifest"
    ):
        load_translator_bundle(copy)
    (copy / "weights.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"does not list weights\.safetensors"):
        load_translator_bundle(copy)


@pytest.mark.parametrize("value", [-1, 0, True, "1", 99])
def test_formats_that_never_were_are_refused(copy: Path, value: object) -> None:
    change_manifest(copy, "format", value)
    with pytest.raises(CheckpointError, match="has format"):
        load_translator_bundle(copy)


def test_a_loop_of_links_is_refused(copy: Path) -> None:
    (copy / "weights.safetensors").unlink()
    (copy / "weights.safetensors").symlink_to("weights.safetensors")
    with pytest.raises(CheckpointError, match=r"lies outside the directory|is missing"):
        load_translator_bundle(copy)


def test_a_huge_recipe_is_refused_before_it_is_built(copy: Path) -> None:
    recipe = (copy / "recipe.yaml").read_text(encoding="utf-8").replace("dim: 16", "dim: 65536")
    (copy / "recipe.yaml").write_text(recipe, encoding="utf-8")
    write_manifest(copy, kind=KIND)
    with pytest.raises(CheckpointError, match=r"does not fit this model .*65536"):
        load_translator_bundle(copy)


def test_a_tokenizer_of_another_kind_than_the_recipes(copy: Path) -> None:
    """Every file is as its manifest says; they do not belong together."""
    shutil.rmtree(copy / "tokenizer")
    (copy / "tokenizer").mkdir()
    characters = CharacterTokenizer(Vocabulary("ab"))
    TokenizerPair(characters, characters, shared=True).save(copy / "tokenizer")
    write_manifest(copy, kind=KIND)
    with pytest.raises(
        CheckpointError,
        match="does not hold a tokenizer of kind 'sentencepiece', which the recipe asks for",
    ):
        load_translator_bundle(copy)
