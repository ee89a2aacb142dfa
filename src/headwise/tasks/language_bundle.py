"""The bundle of a language model: weights, recipe, tokenizer, results, in one directory that proves itself.

    model/  weights.safetensors   recipe.yaml (resolved)   tokenizer/   results.json   README.md (model card)   MANIFEST.json

The same form as a translator's (`bundle.py`), told apart by the recipe's task. The one place that knows what is inside the
weights of each kind of model is the `match` in `_restore`; tables of n-grams are checked before they are used, because an id
that points outside would be read from somewhere else.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import headwise
from headwise.errors import CheckpointError
from headwise.models.choices import LanguageNetwork, build_language_model
from headwise.models.ngram import NgramModel, NgramSettings
from headwise.models.ngram.tables import NgramTables
from headwise.settings import check_settings, read_settings_file
from headwise.storage import publish_directory, read_json, verify_directory
from headwise.tasks.bundle import KIND, check_listed, explain_task, task_of
from headwise.tasks.bundle_directory import find_bundle
from headwise.tasks.language_recipe import LanguageRecipe, SentenceReading, StreamReading
from headwise.tasks.neural_tokens import NeuralTokenModel
from headwise.tasks.recipe import write_recipe
from headwise.tasks.result_rows import card_lines
from headwise.text.choices import TokenizerPair, load_fitting_tokenizers
from headwise.text.tokenizer import BOS, EOS, Tokenizer
from headwise.training.precision import choose_device
from headwise.weights import Weights, load_weights, read_tensors, write_tensors

WEIGHTS = "weights.safetensors"


@dataclass(frozen=True)
class LanguageBundle:
    """A language model's parts."""

    directory: Path
    recipe: LanguageRecipe
    tokenizer: Tokenizer
    model: NgramModel | NeuralTokenModel
    results: Mapping[str, Any]


def save_language_bundle(
    directory: Path,
    *,
    recipe: LanguageRecipe,
    tokenizer: Tokenizer,
    weights: Weights,
    results: Mapping[str, Any],
) -> None:
    """Write a bundle; an older one of the same name makes way at the last moment."""
    with publish_directory(directory, kind=KIND, replace=True) as temporary:
        write_tensors(temporary / WEIGHTS, weights)
        (temporary / "recipe.yaml").write_text(write_recipe(recipe), encoding="utf-8")
        (temporary / "tokenizer").mkdir()
        TokenizerPair(tokenizer, tokenizer, shared=True).save(temporary / "tokenizer")
        (temporary / "results.json").write_text(
            json.dumps(results, ensure_ascii=False, indent=2), encoding="utf-8"
        )
        (temporary / "README.md").write_text(_model_card(recipe, results), encoding="utf-8")


def load_language_bundle(directory: Path) -> LanguageBundle:
    """A verified language model."""
    path = find_bundle(directory, recipe="ptb-ngram")
    task = task_of(path)
    if task != "language_modeling":
        raise _explain(task, path)
    check_listed(verify_directory(path, kind=KIND), path)
    data = read_settings_file(path / "recipe.yaml")
    recipe = check_settings(LanguageRecipe, data, file=path / "recipe.yaml")
    tokenizer = load_fitting_tokenizers(path / "tokenizer", recipe.text).source
    model = _restore(recipe, tokenizer.size, path / WEIGHTS)
    return LanguageBundle(path, recipe, tokenizer, model, read_json(path / "results.json"))


def _explain(task: Any, path: Path) -> CheckpointError:
    """Why a model of another kind answers neither question, and what it is for."""
    match task:
        case "masked_language":
            why = (
                "it guesses a hidden word from both sides and gives no sentence a probability",
                "它从两侧猜被遮住的词，不给句子概率",
            )
        case "bidirectional_language":
            why = (
                "it reads from both ends, and two half sentences do not make the probability of a whole one",
                "它从两端各读一半，两个半句合不成整句的概率",
            )
        case "word_vectors":
            why = ("vectors of single words have no probabilities", "单个词的向量没有概率")
        case _:
            why = ("", "")
    return explain_task(task, "a language model", "语言模型", "ptb-ngram", path, why=why)


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
            "does not hold the n-grams its recipe and tokenizer speak of; use another copy of the bundle",
            "其中的 n 元语法与配方、词表不符；请换用其他副本",
            file=file,
        )
    return tables


def _model_card(recipe: LanguageRecipe, results: Mapping[str, Any]) -> str:
    return f"""# Language model, {recipe.data.language}

Made by headwise {headwise.__version__}. Model: {recipe.model.kind}. The whole recipe is in `recipe.yaml`.

## Results
{card_lines(results)}

## Use
```python
import headwise
model = headwise.LanguageModel.load("DIR OF THIS FILE")
print(model.score(["…"])[0].perplexity, model.predict("…"))
```

## Limits
It knows what its training text taught it, and was measured only on the data named above.
"""
