from pathlib import Path

import pytest

from headwise.errors import SettingsError
from headwise.language import use_language
from headwise.settings import read_yaml
from headwise.tasks.recipe import load_recipe, recipe_from, write_recipe
from headwise.tasks.recipe_files import read_recipe_text, shipped_recipes
from headwise.tasks.run import train
from headwise.tasks.table import task_words

OWN = {"data": {"source": "en", "target": "de", "train": "my/train"}}
NAMES = ["base", "big", "en-zh", "multi30k-en-de", "multi30k-en-fr", "pocket", "zh-en"]


def test_the_promised_recipes_are_shipped() -> None:
    assert set(NAMES) <= set(shipped_recipes())


@pytest.mark.parametrize("name", sorted(shipped_recipes()))
def test_a_shipped_recipe_is_valid_and_introduces_itself(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.task in task_words()
    assert len(shipped_recipes()[name].summary) > 20
    use_language("zh")
    assert shipped_recipes()[name].summary.endswith(("。", "？")), (
        "its second line says it in Chinese"
    )
    assert f"headwise train {name}" in read_recipe_text(name), "its header says the command"


@pytest.mark.parametrize("name", sorted(shipped_recipes()))
def test_a_written_recipe_reads_back_equal(name: str, tmp_path: Path) -> None:
    recipe = load_recipe(name)
    (tmp_path / "recipe.yaml").write_text(write_recipe(recipe), encoding="utf-8")
    assert load_recipe(tmp_path / "recipe.yaml") == recipe
    assert read_yaml(write_recipe(recipe)) == recipe.model_dump(mode="json"), (
        "every default is written out"
    )


def test_data_alone_makes_a_recipe() -> None:
    recipe = recipe_from(OWN, ["training.steps=7"])
    assert recipe.training.steps == 7
    assert recipe.model.kind == "encoder_decoder"


@pytest.mark.parametrize(
    ("overrides", "en", "zh"),
    [
        (
            ["text.shared=false"],
            "tied=all needs one vocabulary for both languages; set text.shared=true",
            "共用词表",
        ),
        (
            ["training.keep.best=bleu", "evaluation.validation_sentences=0"],
            "set evaluation.validation_sentences, e.g. 500",
            "evaluation.validation_sentences",
        ),
        (
            ["model.encoder.heads=7"],
            "model: encoder.heads=7 does not divide dim=512; choose a divisor such as 8",
            "不能整除",
        ),
        (["data.target=en"], "data: source and target are both 'en'", "都是 'en'"),
        (["training.ema=0.9", "training.average={}"], "set one of them to null", "设为 null"),
        (["decoding.num_best=9"], "cannot exceed the beam's size", "不能超过束宽"),
        (
            ["task=summarising"],
            (
                "task: must be 'translation' or 'language_modeling' or 'word_vectors' or "
                "'classification' or 'tagging' or 'masked_language' or 'bidirectional_language', "
                "not 'summarising'"
            ),
            "task：必须是 'translation' 或",
        ),
        (["model.encoder.attention.kind=fusd"], "no kind 'fusd'; choose one of", "可选："),
        (
            ["data.train={path: x, wieght: 2}"],
            "data.train.0.wieght: unknown key; did you mean 'weight'?",
            "weight",
        ),
    ],
)
def test_combinations_that_cannot_be(overrides: list[str], en: str, zh: str) -> None:
    with pytest.raises(SettingsError) as caught:
        recipe_from(OWN, overrides)
    assert en in str(caught.value)
    use_language("zh")
    assert zh in str(caught.value)


def test_a_recipe_without_a_training_corpus_is_not_trained(tmp_path: Path) -> None:
    """Only the recipe of an imported model names none."""
    recipe = recipe_from(OWN, ["data.train=[]"])
    with pytest.raises(SettingsError, match=r"data\.train names no corpus"):
        train(recipe, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_positions_must_reach_the_end_of_a_row() -> None:
    with pytest.raises(SettingsError, match=r"model\.position\.max_length is 32, but rows have 64"):
        load_recipe("pocket", ["model.position={kind: learned, max_length: 32}"])


@pytest.mark.parametrize(
    ("override", "key", "enough"),  # source rows may be longer than those of the target
    [
        (
            "model.encoder.attention={kind: linformer, max_length: 48}",
            "model.encoder.attention.max_length",
            128,
        ),
        (
            "model.decoder.cross_attention={kind: linformer, max_length: 48}",
            "model.decoder.cross_attention.max_length",
            128,
        ),
        ("model.position={kind: learned, max_length: 48}", "model.position.max_length", 128),
        (
            "model.decoder.attention={kind: full, score: {kind: location, max_length: 48}}",
            "model.decoder.attention.score.max_length",
            64,
        ),
    ],
)
def test_attention_of_limited_length_must_reach_it_too(
    override: str, key: str, enough: int
) -> None:
    with pytest.raises(SettingsError, match=f"{key} is 48, but rows have 64 tokens") as caught:
        load_recipe("pocket", [override])
    assert f"set {key}={enough} or more" in str(caught.value)
    load_recipe("pocket", [override.replace("48", "64")])


def test_the_best_is_chosen_by_something_that_is_measured() -> None:
    with pytest.raises(
        SettingsError, match=r"training\.keep\.best is 'foo'; validation measures loss"
    ):
        load_recipe("pocket", ["training.keep.best=foo"])


def test_norms_over_tokens_count_a_batch_once() -> None:
    changes = {"model": {"norm": {"kind": "power"}}, "training": {"recompute": "blocks"}}
    with pytest.raises(
        SettingsError,
        match=r"norm\.kind=power would count its batch twice; set training\.recompute=nothing",
    ):
        recipe_from(OWN | changes)
    # A language model's blocks too, in a new run and in one that goes on.
    for norm in (
        "power",
        "batch",
    ):
        with pytest.raises(SettingsError, match=rf"norm\.kind={norm} would count its batch twice"):
            load_recipe("shakespeare-gpt", [f"model.norm.kind={norm}", "training.recompute=blocks"])


@pytest.mark.parametrize("kind", ["word", "window", "recurrent", "encoder", "elmo"])
def test_a_rung_keeps_what_the_recipe_says_of_all_rungs(kind: str) -> None:
    """Rungs are compared at equal settings: only what a rung does not have may differ from the
    recipe."""
    before, after = load_recipe("ud-ewt-tags"), load_recipe("ud-ewt-tags", [f"model.kind={kind}"])
    assert after.model.kind == kind
    same = {
        name for name in type(before.model).model_fields if name in type(after.model).model_fields
    } - {"kind"}
    if kind == "elmo":
        # It reads every word by its letters already.
        same -= {
            "letters",
            "word_dropout",
            "spelling",
        }
    assert "dropout" in same
    assert {name: getattr(after.model, name) for name in same} == {
        name: getattr(before.model, name) for name in same
    }
