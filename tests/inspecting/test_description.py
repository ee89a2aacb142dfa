from pathlib import Path

import pytest

from headwise.errors import SettingsError, UsageError
from headwise.inspecting.description import describe_model
from tests.tasks.tiny import OVERRIDES


def test_a_recipe_is_described_like_the_model_it_becomes(tiny_run: Path) -> None:
    trained, planned = describe_model(tiny_run), describe_model("pocket", OVERRIDES)
    found = trained.as_dict()
    assert found.pop("results")["pairs"] > 0
    assert planned.as_dict() == found


def test_a_large_model_is_described_without_its_memory() -> None:
    assert describe_model("big").as_dict()["parameters"] > 150_000_000


def test_what_cannot_be_described(tiny_run: Path) -> None:
    with pytest.raises(
        UsageError, match=r"is a trained model, its parts cannot be changed .model.dim=8."
    ):
        describe_model(tiny_run, ["model.dim=8"])
    with pytest.raises(SettingsError, match="there is no recipe 'poket'; did you mean 'pocket'"):
        describe_model("poket")
