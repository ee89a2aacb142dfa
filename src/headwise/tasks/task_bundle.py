"""Writes the bundle of a trained model of any task, with its model card.

    model/  what every bundle holds (bundle.py), the card (model_card.py), the parts of the task

`run.py` saves a finished run with it, and `checkpoint_bundle.py` the weights of an unfinished one.
Tested by `tests/promises` over the table of tasks.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.bundle import write_bundle
from headwise.tasks.model_card import model_card
from headwise.tasks.task import Task
from headwise.weights import Weights


def write_task_bundle(
    directory: Path,
    task: Task[Any, Any],
    recipe: AnyRecipe,
    prepared: Any,
    *,
    weights: Weights,
    results: Mapping[str, Any],
    notes: Sequence[str] = (),
) -> None:
    """Write a bundle; an older one of the same name makes way at the last moment."""
    card = model_card(
        task.title(recipe),
        details=task.card_details(recipe, prepared),
        use=task.card_use(recipe),
        results=results,
        data=recipe.model_dump(mode="json").get("data") or {},
        notes=notes,
        recipe_type=type(recipe),
    )
    write_bundle(
        directory,
        form=recipe.bundle_form,
        recipe=recipe,
        weights=weights,
        results=results,
        card=card,
        write_parts=lambda folder: task.save_parts(recipe, prepared, folder),
    )
