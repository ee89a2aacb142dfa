"""What a translator's recipe or data make impossible is refused before training."""

from pathlib import Path

import pytest

from headwise.errors import DataError, SettingsError, UsageError
from headwise.tasks.recipe import recipe_from
from headwise.tasks.run import check_run, train
from headwise.tasks.translation.recipe import TranslationRecipe
from tests.tasks.tiny import tiny_recipe

ROOT = Path(__file__).resolve().parents[3]


def prepare_long(tmp_path: Path, part: str) -> TranslationRecipe:
    """The source is twice as long as the target, and one source of `part` longer than all
    others."""
    for name in ("train", "valid", "test"):
        sources = ["ja nein " * 8] * 20 + ["ja " * 40] * (name == part)
        (tmp_path / f"{name}.de").write_text("\n".join(sources) + "\n", encoding="utf-8")
        (tmp_path / f"{name}.en").write_text(
            "yes no yes no yes no yes no\n" * len(sources), encoding="utf-8"
        )
    files = [f"data.{name}={tmp_path / name}" for name in ("train", "valid", "test")]
    return tiny_recipe(
        *files,
        "data.source=de",
        "data.target=en",
        "text={kind: words, size: 50}",
        "data.row_tokens=16",
        "model.embedding.tied=output",
        "data.filter.drop_duplicates=false",
    )


def test_source_rows_are_measured_before_a_limit_meets_them(tmp_path: Path) -> None:
    recipe = prepare_long(tmp_path, "none")
    limited = recipe_from(
        recipe.model_dump(mode="json"),
        ["model.encoder.attention={kind: linformer, max_length: 20}"],
    )
    with pytest.raises(
        SettingsError,
        match=r"encoder\.attention\.max_length is 20, but rows have 3\d tokens \(source rows",
    ):
        check_run(limited, directory=tmp_path / "data")


def test_a_test_sentence_over_the_limit_is_found_before_training(tmp_path: Path) -> None:
    recipe = prepare_long(tmp_path, "test")
    limited = recipe_from(
        recipe.model_dump(mode="json"),
        ["model.encoder.attention={kind: linformer, max_length: 40}"],
    )
    with pytest.raises(
        DataError, match=r":21: a source of 41 tokens in data\.test, but the model reads at most 40"
    ) as caught:
        check_run(limited, directory=tmp_path / "data")
    assert "set model.encoder.attention.max_length=41 or more" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            ["decoding.required=[no]", "decoding.forbidden=[no]"],
            "required phrase 'no' is forbidden too",
        ),
        (
            ["decoding.kind=greedy", "decoding.required=[no]"],
            "because they follow one path; use kind=beam",
        ),
        (["decoding.max_length=1000000000"], r"max_length is 1,000,000,000; at most 65,536 tokens"),
    ],
)
def test_a_search_that_cannot_be_is_refused_with_the_recipe(
    tmp_path: Path, changes: list[str], message: str
) -> None:
    recipe = prepare_long(tmp_path, "none")
    with pytest.raises(SettingsError, match=message):
        recipe_from(recipe.model_dump(mode="json"), changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            ["decoding.prefix=no no no no", "decoding.max_length=4"],
            "take 5 tokens, but max_length is 4 here",
        ),
        (["decoding.prefix=no Xyzzy"], "the prefix 'no Xyzzy' is outside the model's vocabulary"),
        (
            ["decoding.kind=beam", "decoding.required=[Xyzzy]"],
            "the required phrase 'Xyzzy' is outside the model's vocabulary",
        ),
        (
            ["decoding.forbidden=[Xyzzy]"],
            "the forbidden phrase 'Xyzzy' is outside the model's vocabulary",
        ),
    ],
)
def test_a_search_that_the_tokenizer_cannot_do_is_refused_before_training(
    tmp_path: Path, changes: list[str], message: str
) -> None:
    """By --check, and by a training, which has then made no checkpoint."""
    recipe = recipe_from(prepare_long(tmp_path, "none").model_dump(mode="json"), changes)
    assert isinstance(recipe, TranslationRecipe)
    with pytest.raises(UsageError, match=message):
        check_run(recipe, directory=tmp_path / "data")
    with pytest.raises(UsageError, match=message):
        train(recipe, run=tmp_path / "run")
    assert not (tmp_path / "run" / "checkpoints").exists()
