"""A translator of prime sizes, as a step to be watched."""

from collections.abc import Callable

import torch
from torch import Tensor

from headwise.settings import check_settings
from headwise.tasks.planned_step import PlannedStep, find_vocabularies
from headwise.tasks.translation.losses import plan_step
from headwise.tasks.translation.recipe import TranslationRecipe


def made_recipe(**training: object) -> TranslationRecipe:
    stack = {"layers": 2, "heads": 2}
    return check_settings(
        TranslationRecipe,
        {
            "data": {"source": "en", "target": "de", "train": "pocket:train", "row_tokens": 24},
            "text": {"size": 211},
            "model": {
                "dim": 22,
                "encoder": stack,
                "decoder": stack,
                "feed_forward": {"hidden": 37},
            },
            "training": {
                "batch_tokens": 5 * 24,
                "precision": "fp32",
                "compile": "off",
                "device": "cpu",
                **training,
            },
        },
    )


def made_step(**training: object) -> PlannedStep:
    return step_of(made_recipe(**training))


def step_of(recipe: TranslationRecipe) -> PlannedStep:
    return plan_step(recipe, find_vocabularies(recipe.text.size, None))


def with_content(
    step: PlannedStep, rows: int, watch: Callable[[Callable[[], Tensor], torch.nn.Module], None]
) -> None:
    """The same step on tensors with content."""
    with step.step(rows, bf16=False)() as (module, loss):
        watch(loss, module)
