"""A small recipe for every task, for the tests of what a run promises."""

import hashlib
from pathlib import Path

from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.recipe import recipe_from
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


def is_single_pass(recipe: AnyRecipe) -> bool:
    return isinstance(find_task(recipe), SinglePassTask)


def weights_of_run(run: Path) -> str:
    file = next((run / "model").glob("*.safetensors"))
    return hashlib.sha256(file.read_bytes()).hexdigest()
