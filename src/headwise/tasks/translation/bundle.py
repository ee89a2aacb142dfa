"""The bundle of a translator: the files of every bundle (tasks/bundle.py) and the tokenizers."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.models.choices import build_model
from headwise.models.recurrent.choices import RecurrentTranslatorSettings
from headwise.models.transformer_settings import TransformerSettings
from headwise.models.translation_model import TranslationModel
from headwise.tasks.arguments import require_path
from headwise.tasks.bundle import open_bundle
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.choices import TokenizerPair, load_fitting_tokenizers


@dataclass(frozen=True)
class TranslatorBundle:
    """A trained translator's parts."""

    directory: Path
    recipe: TranslationRecipe
    tokenizers: TokenizerPair
    model: TranslationModel
    results: Mapping[str, Any]


def load_translator_bundle(directory: Path | str) -> TranslatorBundle:
    """A verified bundle, on the CPU and ready to translate."""
    path = require_path(directory, "directory", "runs/demo/model")
    opened = open_bundle(path, TranslationRecipe)
    recipe = opened.recipe
    tokenizers = load_fitting_tokenizers(opened.directory / "tokenizer", recipe.text)
    model = opened.load_weights(lambda: new_translation_model(recipe, tokenizers))
    return TranslatorBundle(opened.directory, recipe, tokenizers, model, opened.results)


def new_translation_model(recipe: TranslationRecipe, tokenizers: TokenizerPair) -> TranslationModel:
    """The model of a recipe for these vocabularies, its weights not yet drawn."""
    return build_model(
        recipe.model,
        source_size=tokenizers.source.size,
        target_size=tokenizers.target.size,
        generator=None,
    )


def card_title(recipe: TranslationRecipe) -> str:
    return f"Translator {recipe.data.source} → {recipe.data.target}"


def card_details(recipe: TranslationRecipe) -> str:
    match recipe.model:
        case TransformerSettings(encoder=encoder, decoder=decoder):
            layers = f"{encoder.layers} encoder and {decoder.layers} decoder layers"
        case RecurrentTranslatorSettings(layers=count, cell=cell, attention=attention):
            layers = (
                f"{count} {cell} encoder and {count} decoder layers, attention: {attention.kind}"
            )
    return f"Model: {recipe.model.kind}, width {recipe.model.dim}, {layers}."


CARD_USE = """```python
import headwise
translator = headwise.Translator.load("DIR OF THIS FILE")
print(translator(["…"])[0].text)
```"""
