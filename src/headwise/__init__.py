"""Headwise: from attention to a working Transformer.

    import headwise
    headwise.train("pocket", run="runs/first")                       # a recipe's name or path
    translator = headwise.Translator.load("runs/first/model")
    print(translator(["The dog is old."]))

Every part can be imported by itself, e.g. `from headwise.attention import MultiHeadAttention`.
Importing the package is cheap: torch is loaded when the first part that needs it is.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"
__all__ = [
    "Labeller",
    "LanguageModel",
    "Recipe",
    "Translation",
    "Translator",
    "__version__",
    "load_recipe",
    "train",
]

if TYPE_CHECKING:
    from headwise.tasks.labels.labeller import Labeller
    from headwise.tasks.language.language_model import LanguageModel
    from headwise.tasks.recipe import load_recipe
    from headwise.tasks.run import train
    from headwise.tasks.translation.recipe import TranslationRecipe as Recipe
    from headwise.tasks.translation.translator import Translation, Translator


_HOMES = {
    "Labeller": "labels.labeller:Labeller",
    "LanguageModel": "language.language_model:LanguageModel",
    "Recipe": "translation.recipe:TranslationRecipe",
    "load_recipe": "recipe:load_recipe",
    "train": "run:train",
    "Translation": "translation.translator:Translation",
    "Translator": "translation.translator:Translator",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(
            f"module 'headwise' has no attribute {name!r}; it offers {', '.join(__all__)}"
        )
    module, _, found = _HOMES[name].partition(":")
    return getattr(import_module(f"headwise.tasks.{module}"), found)
