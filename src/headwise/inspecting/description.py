"""`describe`: the shape and cost of a model, from a bundle or from a recipe that was never trained."""

from collections.abc import Sequence
from pathlib import Path

import torch

from headwise.errors import UsageError
from headwise.models.choices import build_model
from headwise.models.describe import ModelDescription, describe
from headwise.storage import MANIFEST
from headwise.tasks.recipe import load_translation_recipe
from headwise.tasks.translation.bundle import load_translator_bundle


def describe_model(
    name: Path | str, overrides: Sequence[str] = (), *, length: int = 25
) -> ModelDescription:
    """A bundle or run directory is described as it is; a recipe as it would be built, with its
    largest vocabulary.
    """
    path = Path(name)
    if (path / MANIFEST).is_file() or (path / "model" / MANIFEST).is_file():
        if overrides:
            raise UsageError(
                f"{path} is a trained model, its parts cannot be changed ({overrides[0]}); give a "
                "recipe instead",
                f"{path} 是训练好的模型，不能修改（{overrides[0]}）；请改为给出配方",
            )
        return describe(
            load_translator_bundle(path).model, source_length=length, target_length=length
        )
    recipe = load_translation_recipe(name, overrides)
    with torch.device("meta"):
        model = build_model(
            recipe.model, source_size=recipe.text.size, target_size=recipe.text.size, generator=None
        )
    return describe(model, source_length=length, target_length=length)
