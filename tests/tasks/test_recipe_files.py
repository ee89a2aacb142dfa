from pathlib import Path

import pytest

from headwise.errors import SettingsError
from headwise.tasks.recipe_files import (
    find_keys,
    find_recipe,
    propose_nearest_overrides,
    propose_overrides,
)


def test_a_recipe_is_found_by_path_and_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pocket").write_text("task: translation\n", encoding="utf-8")
    assert find_recipe(tmp_path / "pocket") == tmp_path / "pocket"
    assert find_recipe("pocket").name == "pocket.yaml"
    monkeypatch.chdir(tmp_path)
    assert find_recipe("pocket") == Path("pocket"), (
        "a file of the user's own stands over a shipped name"
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "poket",
            (
                "there is no recipe 'poket'; did you mean 'pocket'[?] give the path of a YAML "
                "file or a name that `headwise recipes` lists$"
            ),
        ),
        ("multi30k", "did you mean 'multi30k-en-"),
        ("qqqqqq", "there is no recipe 'qqqqqq'; give the path"),
        ("nowhere/pocket", "there is no recipe 'nowhere/pocket'; "),
        ("../recipes/pocket", "there is no recipe '../recipes/pocket'"),
    ],
)
def test_a_name_that_is_no_recipe(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=message):
        find_recipe(name)


def test_a_directory_is_no_recipe(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="is a directory; a recipe is a YAML file"):
        find_recipe(tmp_path)


def test_keys_are_found_in_the_shipped_recipes() -> None:
    assert find_keys("steps", task="translation") == ["training.steps"]
    assert "training.seed" in find_keys("seed", task="word_vectors")
    assert propose_overrides("--seed", "7", task="translation") == ["training.seed=7"]
    assert find_keys("nothing_of_ours", task="translation") == []
    assert find_keys("epochs", task="translation") == [], "word vectors alone count in epochs"
    assert find_keys("epochs", task="word_vectors") == ["training.epochs"]


@pytest.mark.parametrize(
    ("option", "proposed"),
    [
        ("--step", ["training.steps=20"]),
        ("--batch-token", ["training.batch_tokens=20"]),
        ("--learnin-rate", ["training.schedule.peak=20"]),
        ("--qqqq", []),
    ],
)
def test_a_misspelt_option_is_answered_by_the_nearest_key(option: str, proposed: list[str]) -> None:
    assert propose_nearest_overrides(option, "20", task="translation") == proposed
