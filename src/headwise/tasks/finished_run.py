"""Reads what a finished run has saved: its results, and whether it was measured.

    saved_results(recipe, run)             results.json of a bundle with exactly this recipe
    has_scores(task, recipe, run, …)       whether a comparison could read the scores of the run

`--resume` of a run that is finished keeps its results and its model card, whose times and memory
are those of the training. `headwise compare` leaves out runs that are finished.

Tested by `tests/promises` over the table of tasks, and through `compare`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headwise.errors import HeadwiseError, UsageError
from headwise.settings import read_settings_file
from headwise.storage import read_json, verify_directory
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.bundle import RESULTS
from headwise.tasks.bundle_form import RECIPE
from headwise.tasks.recipe import check_recipe
from headwise.tasks.task import Task


def saved_results(recipe: AnyRecipe, directory: Path) -> dict[str, Any] | None:
    """The results in the bundle of a run, if the bundle has exactly this recipe."""
    model = directory / "model"
    try:
        found = check_recipe(read_settings_file(model / RECIPE))
        results: dict[str, Any] = read_json(model / RESULTS)
    except HeadwiseError:
        return None
    return results if found == recipe else None


def has_scores(
    task: Task[Any, Any], recipe: AnyRecipe, directory: Path, results: Mapping[str, Any]
) -> bool:
    """Whether everything is there that a comparison reads; so for tasks that have none."""
    try:
        metrics = task.comparison_metrics(recipe)
    except UsageError:  # the task cannot be compared
        return True
    is_measured = all(name in results for name in metrics.results)
    return is_measured and all((directory / name).exists() for name in metrics.files)


def is_whole(recipe: AnyRecipe, directory: Path) -> bool:
    """Whether every file of the bundle has the checksum of its manifest."""
    try:
        verify_directory(directory / "model", kind=recipe.bundle_form.kind)
    except HeadwiseError:
        return False
    return True
