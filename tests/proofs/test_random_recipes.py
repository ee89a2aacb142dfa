"""R13: recipes drawn from the published schema. Each is refused with a sentence of ours, or
trained, saved, loaded and used."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from headwise.tasks.table import task_words
from tests.proofs.random_recipes import DRAWS, draw_recipe, schema_of
from tests.proofs.recipe_use import use_recipe, write_files

FEW, PART, PARTS = 40, 500, 10
MAX_SHOWN = 10


def try_recipes(numbers: range, directory: Path) -> tuple[int, list[str]]:
    """How many were accepted, and every fault with its recipe."""
    files = write_files(directory)
    num_accepted, faults = 0, []
    for number in numbers:
        recipe = draw_recipe(number, files)
        is_accepted, fault = use_recipe(recipe, files, directory / "case")
        num_accepted += is_accepted
        if fault is not None:
            faults.append(f"recipe {number}: {fault}\n{yaml.safe_dump(recipe, allow_unicode=True)}")
    return num_accepted, faults


def test_a_few(tmp_path: Path) -> None:
    num_accepted, faults = try_recipes(range(FEW), tmp_path)
    assert not faults, "\n".join(faults[:MAX_SHOWN])
    assert num_accepted > FEW // 5, (
        "nearly all are refused: the generator draws nothing that can be built"
    )


@pytest.mark.prove
@pytest.mark.parametrize("part", range(PARTS))
def test_many(part: int, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    num_accepted, faults = try_recipes(range(FEW + part * PART, FEW + (part + 1) * PART), tmp_path)
    record_property("accepted", num_accepted)
    assert not faults, f"{len(faults)} of {PART}\n" + "\n".join(faults[:MAX_SHOWN])


@pytest.mark.parametrize(
    "num_draws",
    [pytest.param(1, id="once"), pytest.param(DRAWS, id="until it fits", marks=pytest.mark.prove)],
)
def test_every_kind_of_every_choice_is_drawn(num_draws: int, tmp_path: Path) -> None:
    """A generator that never draws a kind proves nothing of it; a kind added to the schema is
    expected here at once."""
    files = write_files(tmp_path)
    expected = {
        definition["properties"]["kind"]["const"]
        for task in task_words()
        for definition in schema_of(task)["$defs"].values()
        if "const" in definition["properties"].get("kind", {})
        and not set(CORPUS) & definition["properties"].keys()
    }
    missing = set(expected)
    for number in range(2500):
        if not missing:
            break
        missing -= _kinds(draw_recipe(number, files, num_draws=num_draws))
    assert missing == set()


CORPUS = ("path", "name", "split")
"""What a corpus has: every recipe reads the same files."""


def _kinds(value: object) -> set[str]:
    if isinstance(value, dict):
        own = {value["kind"]} if isinstance(value.get("kind"), str) else set()
        return own.union(*map(_kinds, value.values()))
    return set().union(*map(_kinds, value)) if isinstance(value, list) else set()
