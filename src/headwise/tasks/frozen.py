"""Whether the patterns of `training.freeze` name weights of a recipe's model, asked before anything is read or written.

Names do not depend on the size of a vocabulary, so the model is built on torch's meta device, where weights take no room.
Tested: a pattern that matches nothing, or all, is refused and no run is begun.
"""

import torch
from torch import nn

from headwise.models.choices import build_model
from headwise.models.labeller import build_labeller
from headwise.models.masked_language_model import build_masked_language_model
from headwise.tasks.label_recipe import LabelRecipe
from headwise.tasks.masked_recipe import MaskedRecipe
from headwise.tasks.recipe import AnyRecipe, Recipe
from headwise.training.freezing import freeze

SIZE = 8
"""Of the vocabulary, here where none is needed."""


def check_frozen(recipe: AnyRecipe) -> None:
    """Refuse patterns that match no weight, or every one; language models are asked when their training begins."""
    if not isinstance(recipe, Recipe | LabelRecipe | MaskedRecipe) or not recipe.training.freeze:
        return
    with torch.device("meta"):
        freeze(_build(recipe), recipe.training.freeze)


def _build(recipe: Recipe | LabelRecipe | MaskedRecipe) -> nn.Module:
    match recipe:
        case LabelRecipe():
            return build_labeller(recipe.model, vocabulary_size=SIZE, num_classes=2, pooling="none", generator=None)
        case MaskedRecipe():
            return build_masked_language_model(
                recipe.model,
                vocabulary_size=SIZE,
                has_pairs=recipe.second_task == "next_sentence",
                generator=None,
            )
        case Recipe():
            return build_model(recipe.model, source_size=SIZE, target_size=SIZE, generator=None)
