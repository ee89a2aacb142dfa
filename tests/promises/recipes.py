"""A small recipe for every task, for the tests of what a run promises."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.recipe import recipe_from
from headwise.tasks.run import train
from headwise.tasks.run_start import RunSummary
from headwise.tasks.table import find_task, task_words
from headwise.tasks.task import SinglePassTask
from tests.plugins.regression import WORD as ADDED
from tests.plugins.regression import regression_recipe
from tests.tasks.every_task import recipe_of

WORDS = (*task_words(), ADDED)
COUNTED = "language_modeling (n-grams)"
EVERY = (*WORDS, COUNTED)
TORCHRUN = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
STEPPED = tuple(word for word in WORDS if word != "word_vectors")


def make_recipe(name: str, folder: Path, **training: object) -> AnyRecipe:
    if name == COUNTED:
        recipe_of("language_modeling", folder)  # writes the text
        data = {"language": "en", "train": str(folder / "text.txt")}
        return recipe_from({"task": "language_modeling", "data": data, "model": {"order": 2}})
    if name == ADDED:
        return recipe_from(regression_recipe(folder, **training))
    recipe = recipe_of(name, folder)
    if not training:
        return recipe
    data = recipe.model_dump(mode="json")
    return recipe_from({**data, "training": {**data["training"], **training}})


@dataclass(frozen=True)
class Finished:
    """A run that has ended, for tests that only read it."""

    recipe: AnyRecipe
    run: Path
    summary: RunSummary


class FinishedRuns:
    """Trains the plain recipe of each task once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: dict[str, Finished] = {}

    def of(self, name: str) -> Finished:
        if name not in self._found:
            folder = self._folder / str(len(self._found))
            folder.mkdir()
            recipe = make_recipe(name, folder)
            summary = train(recipe, run=folder / "run")
            self._found[name] = Finished(recipe, folder / "run", summary)
        return self._found[name]


def is_single_pass(recipe: AnyRecipe) -> bool:
    return isinstance(find_task(recipe), SinglePassTask)


def weights_of_run(run: Path) -> str:
    file = next((run / "model").glob("*.safetensors"))
    return hashlib.sha256(file.read_bytes()).hexdigest()
