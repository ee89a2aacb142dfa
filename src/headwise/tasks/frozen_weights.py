"""Whether the patterns of `training.freeze` name weights of a recipe's model, asked before anything is read or written.

Names do not depend on the size of a vocabulary, so the model is built on torch's meta device, where weights take no room.
Tested: a pattern that matches nothing, or all, is refused and no run is begun.
"""

import torch
from torch import nn

from headwise.models.choices import NeuralSettings, build_language_model, build_model
from headwise.models.elmo import build_bidirectional
from headwise.models.labeller import build_labeller
from headwise.models.masked_language_model import build_masked_language_model
from headwise.models.recurrent.language_model import Carrying, RecurrentLanguageModel
from headwise.tasks.labels.recipe import LabelRecipe
from headwise.tasks.language.recipe import LanguageRecipe, StreamReading
from headwise.tasks.pretraining.elmo_recipe import BidirectionalRecipe
from headwise.tasks.pretraining.masked_recipe import MaskedRecipe
from headwise.tasks.recipe import AnyRecipe, Recipe
from headwise.tasks.word_vectors.recipe import WordVectorRecipe
from headwise.training.freezing import freeze

SIZE = 8
"""Of the vocabulary, here where none is needed."""


def check_frozen(recipe: AnyRecipe) -> None:
    """Refuse patterns that match no weight, or every one."""
    if isinstance(recipe, WordVectorRecipe) or not recipe.training.freeze:
        return
    with torch.device("meta"):
        freeze(_build(recipe), recipe.training.freeze)


def _build(
    recipe: Recipe | LabelRecipe | MaskedRecipe | LanguageRecipe | BidirectionalRecipe,
) -> nn.Module:
    match recipe:
        case LabelRecipe():
            return build_labeller(
                recipe.model, vocabulary_size=SIZE, num_classes=2, pooling="none", generator=None
            )
        case MaskedRecipe():
            return build_masked_language_model(
                recipe.model,
                vocabulary_size=SIZE,
                has_pairs=recipe.second_task == "next_sentence",
                generator=None,
            )
        case BidirectionalRecipe():
            return build_bidirectional(recipe.model, vocabulary_size=SIZE, generator=None)
        case LanguageRecipe():
            assert isinstance(recipe.model, NeuralSettings), (
                "a recipe of n-grams takes nothing of how to train"
            )
            network = build_language_model(recipe.model, size=SIZE, generator=None)
            if isinstance(network, RecurrentLanguageModel) and isinstance(
                recipe.reading, StreamReading
            ):
                return Carrying(network, 1)
            return network
        case Recipe():
            return build_model(recipe.model, source_size=SIZE, target_size=SIZE, generator=None)
