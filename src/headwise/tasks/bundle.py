"""The bundle: everything a trained translator needs, in one directory that proves itself.

    model/  weights.safetensors   recipe.yaml (resolved)   tokenizer/   results.json   README.md (model card)   MANIFEST.json

Numbers are safetensors, the rest is text; nothing is ever unpickled. Loading checks every file against the manifest's
SHA-256 first, then the recipe, then the tokenizers' probe sentences, then that each weight has the expected name and shape.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import headwise
from headwise.errors import CheckpointError
from headwise.models.choices import EncoderDecoderSettings, build_model
from headwise.models.recurrent_choices import RecurrentTranslatorSettings
from headwise.models.translation_model import TranslationModel
from headwise.settings import check_settings, read_settings_file
from headwise.storage import (
    MANIFEST,
    publish_directory,
    read_json,
    read_manifest,
    verify_directory,
    verify_listed,
)
from headwise.tasks.arguments import require_path
from headwise.tasks.bundle_directory import find_bundle
from headwise.tasks.recipe import Recipe, write_recipe
from headwise.tasks.result_rows import card_lines
from headwise.text.choices import TokenizerPair, load_fitting_tokenizers
from headwise.weights import check_shapes, load_weights, save_weights

KIND = "bundle"
WORD_VECTORS = "word vectors"
"""The kind of their bundle (word_vector_run.py), which may have no recipe."""
REQUIRED = ("weights.safetensors", "recipe.yaml", "results.json", "tokenizer/tokenizers.json")


@dataclass(frozen=True)
class Bundle:
    """A trained translator's parts."""

    directory: Path
    recipe: Recipe
    tokenizers: TokenizerPair
    model: TranslationModel
    results: Mapping[str, Any]


def save_bundle(
    directory: Path,
    *,
    recipe: Recipe,
    tokenizers: TokenizerPair,
    model: TranslationModel,
    results: Mapping[str, Any],
) -> None:
    """Write a bundle; an older one of the same name makes way at the last moment."""
    with publish_directory(directory, kind=KIND, replace=True) as temporary:
        save_weights(model, temporary / "weights.safetensors")
        (temporary / "recipe.yaml").write_text(write_recipe(recipe), encoding="utf-8")
        (temporary / "tokenizer").mkdir()
        tokenizers.save(temporary / "tokenizer")
        (temporary / "results.json").write_text(
            json.dumps(results, ensure_ascii=False, indent=2), encoding="utf-8"
        )
        (temporary / "README.md").write_text(model_card(recipe, results), encoding="utf-8")


def load_bundle(directory: Path | str) -> Bundle:
    """A verified bundle, on the CPU and ready to translate."""
    path = find_bundle(require_path(directory, "directory", "runs/demo/model"))
    task = task_of(path)
    if task in COMMANDS and task != "translation":
        raise explain_task(task, "a translator", "翻译模型", "pocket", path)
    check_listed(verify_directory(path, kind=KIND), path)
    data = read_settings_file(path / "recipe.yaml")
    recipe = check_settings(Recipe, data, file=path / "recipe.yaml")
    tokenizers = load_fitting_tokenizers(path / "tokenizer", recipe.text)
    sizes = {"source_size": tokenizers.source.size, "target_size": tokenizers.target.size}
    with torch.device(
        "meta"
    ):  # shapes without memory: a recipe that does not fit its weights is refused before it is built
        check_shapes(
            build_model(recipe.model, generator=None, **sizes), path / "weights.safetensors"
        )
    model = build_model(recipe.model, generator=None, **sizes)
    load_weights(model, path / "weights.safetensors")
    return Bundle(path, recipe, tokenizers, model.eval(), read_json(path / "results.json"))


COMMANDS = {
    "translation": "translate",
    "language_modeling": "predict",
    "word_vectors": "nearest",
    "classification": "classify",
    "tagging": "tag",
    "masked_language": "senses",
    "bidirectional_language": "senses",
}
"""What to use a model of each task with."""


def explain_task(
    task: Any,
    needed_en: str,
    needed_zh: str,
    recipe: str,
    path: Path,
    *,
    why: tuple[str, str] = ("", ""),
) -> CheckpointError:
    """A bundle of another task than the command is for; `why` (in both languages) it cannot answer."""
    command = COMMANDS.get(task)
    use_en = f"use `headwise {command}` with this one, or " if command else ""
    use_zh = f"该模型请用 `headwise {command}`，或" if command else "请"
    what_en, what_zh = (
        ("a language model", "语言模型")
        if task == "language_modeling"
        else (f"a model of task {task!r}", f"任务 {task!r} 的模型")
    )
    return CheckpointError(
        f"is {what_en}{why[0] and f' ({why[0]})'}, {needed_en} is needed; {use_en}train one, e.g. `headwise train {recipe} --run runs/{recipe}`",
        f"是{what_zh}{why[1] and f'（{why[1]}）'}，需要{needed_zh}；{use_zh}训练一个，例如 `headwise train {recipe} --run runs/{recipe}`",
        file=path,
    )


def task_of(path: Path) -> Any:
    """The task of a bundle. Its recipe is compared with the manifest first: damage is not taken for another task."""
    manifest = read_manifest(path)
    if manifest["kind"] == WORD_VECTORS:
        return "word_vectors"
    if manifest["kind"] != KIND:
        verify_directory(path, kind=KIND)  # refuses it and says what it is
    check_listed(manifest, path)
    verify_listed(path, manifest, "recipe.yaml")
    return read_settings_file(path / "recipe.yaml").get("task", "translation")


def check_listed(manifest: Mapping[str, Any], path: Path) -> None:
    """A manifest may be whole and yet not that of a model."""
    for name in REQUIRED:
        if name not in manifest["files"]:
            raise CheckpointError(
                f"does not list {name}, without which there is no model; use another copy of the bundle",
                f"没有列出 {name}，缺少它就不成其为模型；请换用其他副本",
                file=path / MANIFEST,
            )


def _describe_layers(recipe: Recipe) -> str:
    match recipe.model:
        case EncoderDecoderSettings(encoder=encoder, decoder=decoder):
            return f"{encoder.layers} encoder and {decoder.layers} decoder layers"
        case RecurrentTranslatorSettings(layers=layers, cell=cell, attention=attention):
            return (
                f"{layers} {cell} encoder and {layers} decoder layers, attention: {attention.kind}"
            )


def model_card(recipe: Recipe, results: Mapping[str, Any]) -> str:
    """A README for the bundle: what it is, what it was trained on, what it scores, how to use it."""
    source, target = recipe.data.source, recipe.data.target
    return f"""# Translator {source} → {target}

Made by headwise {headwise.__version__}. Model: {recipe.model.kind}, width {recipe.model.dim}, {_describe_layers(recipe)}. The whole recipe is in `recipe.yaml`.

## Results
{card_lines(results)}

## Use
```python
import headwise
translator = headwise.Translator.load("DIR OF THIS FILE")
print(translator(["…"])[0].text)
```

## Limits
It knows what its training text taught it, and was measured only on the data named above.
"""
