"""Saves and opens the bundle of a language model: weights, recipe, tokenizer and results in one
directory with checksums.

    model/  weights.safetensors   recipe.yaml (resolved)   tokenizer/   results.json
            README.md (model card)   MANIFEST.json

It has the form of every bundle (`tasks/bundle.py`). `_restore` builds the model that the recipe
names and gives it the weights. Tables of n-grams are checked before they are used, because an id
outside the table would read other memory.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.errors import CheckpointError
from headwise.models.choices import LanguageNetwork, build_language_model
from headwise.models.ngram import NgramModel, NgramSettings
from headwise.models.ngram.tables import NgramTables
from headwise.tasks.bundle import open_bundle
from headwise.tasks.language.form import LANGUAGE_MODELS
from headwise.tasks.language.neural_token_model import NeuralTokenModel
from headwise.tasks.language.recipe import LanguageRecipe, SentenceReading, StreamReading
from headwise.text.choices import load_fitting_tokenizers
from headwise.text.tokenizer import BOS, EOS, Tokenizer
from headwise.training.precision import choose_device
from headwise.weights import Weights, load_weights, read_tensors

WEIGHTS = "weights.safetensors"


@dataclass(frozen=True)
class LanguageBundle:
    """A language model's parts."""

    directory: Path
    recipe: LanguageRecipe
    tokenizer: Tokenizer
    model: NgramModel | NeuralTokenModel
    results: Mapping[str, Any]


def load_language_bundle(directory: Path) -> LanguageBundle:
    """A verified language model."""
    opened = open_bundle(directory, LanguageRecipe, accepted=LANGUAGE_MODELS)
    recipe, path = opened.recipe, opened.directory
    tokenizer = load_fitting_tokenizers(path / "tokenizer", recipe.text).source
    model = _restore(recipe, tokenizer.size, path / WEIGHTS)
    return LanguageBundle(path, recipe, tokenizer, model, opened.results)


def _restore(recipe: LanguageRecipe, size: int, file: Path) -> NgramModel | NeuralTokenModel:
    match recipe.model:
        case NgramSettings() as settings:
            tables = read_tensors(file, lowest=-math.inf)  # a word that cannot follow has log 0
            return NgramModel(_restore_tables(tables, settings, size, file))
        case settings:
            network = build_language_model(settings, size=size, generator=None)
            load_weights(network, file)
            return as_token_model(network.to(choose_device("auto")).eval(), recipe)


def as_token_model(network: LanguageNetwork, recipe: LanguageRecipe) -> NeuralTokenModel:
    """The network, to be asked as it was trained: on sentences by themselves or on one stream."""
    match recipe.reading:
        case StreamReading(length=length):
            return NeuralTokenModel(network, first=EOS, context=length)
        case SentenceReading(row_tokens=row_tokens):
            return NeuralTokenModel(network, first=BOS, context=row_tokens)


def _restore_tables(
    weights: Weights, settings: NgramSettings, size: int, file: Path
) -> NgramTables:
    tables = NgramTables.from_arrays({name: tensor.numpy() for name, tensor in weights.items()})
    if tables is None or tables.order != settings.order or tables.vocabulary != size:
        raise CheckpointError(
            "does not hold the n-grams its recipe and tokenizer speak of; use another copy of the "
            "bundle",
            "其中的 n 元语法与配方、词表不符；请换用其他副本",
            file=file,
        )
    return tables
