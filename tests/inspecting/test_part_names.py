"""Parts of models have names in both languages, whatever encoder or network a recipe names."""

import re
from pathlib import Path
from typing import Any, ClassVar

import pytest
from torch import nn

from headwise.inspecting.description import describe_model
from headwise.language import use_language
from headwise.settings.part_names import name_of_part
from headwise.tasks.recipe import recipe_from, write_recipe
from tests.tasks.every_task import recipe_of

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "window": ("tagging", {"model": {"kind": "window"}}),
    "recurrent": ("tagging", {"model": {"kind": "recurrent"}}),
    "word": ("tagging", {"model": {"kind": "word"}}),
    "features": (
        "tagging",
        {"model": {"kind": "encoder", "dim": 8, "heads": 2, "letters": 3, "pairs": 7}},
    ),
    "pairs of sentences": (
        "masked_language",
        {
            "second_task": "next_sentence",
            "model": {"halves": True, "dim": 8, "layers": 1, "heads": 2},
        },
    ),
    "decoder": (
        "language_modeling",
        {"model": {"kind": "decoder_only", "dim": 8, "heads": 2, "position": {"kind": "learned"}}},
    ),
    "neural n-gram": ("language_modeling", {"model": {"kind": "neural_ngram"}}),
}


@pytest.mark.parametrize("name", MODELS)
def test_parts_are_called_by_names(name: str, tmp_path: Path) -> None:
    task, changes = MODELS[name]
    recipe = recipe_from({**recipe_of(task, tmp_path).model_dump(mode="json"), **changes})
    file = tmp_path / "mine.yaml"
    file.write_text(write_recipe(recipe), encoding="utf-8")
    found = describe_model(file)
    _, _, rows = found.tables()[1]
    assert not [row for row in rows if re.search(r"[._*]", row[0])]
    assert sum(int(row[1].replace(",", "")) for row in rows[:-1]) == found.parameters
    use_language("zh")
    assert not [row for row in found.tables()[1][2] if re.search("[a-z]{2}", row[0])]


class _Inner(nn.Module):
    part_names: ClassVar = {"weights": ("inner", "内"), "other": ("other", "其他")}


class _Outer(nn.Module):
    part_names: ClassVar = {"layers.*.weights": ("outer", "外"), "layers": ("layers", "各层")}

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([_Inner()])


def test_the_whole_path_of_an_outer_module_wins_and_then_the_inner_module() -> None:
    assert name_of_part(_Outer(), "layers.*.weights") == ("outer", "外")
    assert name_of_part(_Outer(), "layers.*.other.table") == ("other", "其他")
    assert name_of_part(_Outer(), "layers.*.unnamed") == ("layers", "各层")
    assert name_of_part(_Outer(), "elsewhere.*") == ("elsewhere.*", "elsewhere.*")
