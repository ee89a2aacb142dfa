"""The bundle of a model that names labels, or of an encoder before it has learnt any: the form of `bundle.py` and `labels.json`.

model/  weights.safetensors   recipe.yaml   tokenizer/   labels.json   results.json   README.md   MANIFEST.json
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

import headwise
from headwise.errors import CheckpointError
from headwise.models.labeller import Labeller, Pooling, build_labeller
from headwise.settings import check_settings, read_settings_file
from headwise.storage import publish_directory, read_json, verify_directory
from headwise.tasks.bundle import KIND, check_listed, explain_task, task_of
from headwise.tasks.bundle_directory import find_bundle
from headwise.tasks.label_recipe import LabelRecipe
from headwise.tasks.recipe import AnyRecipe, write_recipe
from headwise.tasks.result_rows import card_lines
from headwise.text.choices import TokenizerPair, load_fitting_tokenizers
from headwise.text.tokenizer import Tokenizer
from headwise.weights import check_shapes, load_weights, save_weights

WEIGHTS, LABELS = "weights.safetensors", "labels.json"
LABEL_TASKS = ("classification", "tagging")


@dataclass(frozen=True)
class LabelBundle:
    """A labeller's parts."""

    directory: Path
    recipe: LabelRecipe
    tokenizer: Tokenizer
    labels: tuple[str, ...]
    model: Labeller
    results: Mapping[str, Any]


def new_labeller(
    recipe: LabelRecipe, *, size: int, num_classes: int, generator: torch.Generator | None
) -> Labeller:
    """The model of a recipe for a vocabulary and classes."""
    pooling: Pooling = recipe.model.pooling if recipe.shape == "one" else "none"
    return build_labeller(
        recipe.model,
        vocabulary_size=size,
        num_classes=num_classes,
        pooling=pooling,
        generator=generator,
    )


def save_encoder_bundle(
    directory: Path,
    *,
    recipe: AnyRecipe,
    tokenizer: Tokenizer,
    labels: tuple[str, ...],
    model: nn.Module,
    results: Mapping[str, Any],
) -> None:
    """Write a bundle; an older one of the same name makes way at the last moment."""
    with publish_directory(directory, kind=KIND, replace=True) as temporary:
        save_weights(model, temporary / WEIGHTS)
        (temporary / "recipe.yaml").write_text(write_recipe(recipe), encoding="utf-8")
        (temporary / "tokenizer").mkdir()
        TokenizerPair(tokenizer, tokenizer, shared=True).save(temporary / "tokenizer")
        (temporary / LABELS).write_text(
            json.dumps(list(labels), ensure_ascii=False), encoding="utf-8"
        )
        (temporary / "results.json").write_text(
            json.dumps(results, ensure_ascii=False, indent=2), encoding="utf-8"
        )
        (temporary / "README.md").write_text(_model_card(recipe, labels, results), encoding="utf-8")


def load_label_bundle(directory: Path) -> LabelBundle:
    """A verified labeller, on the CPU and ready to answer."""
    path = find_bundle(directory, recipe="sst2")
    task = task_of(path)
    if task not in LABEL_TASKS:
        raise explain_task(task, "a classifier or tagger", "分类或标注模型", "sst2", path)
    manifest = verify_directory(path, kind=KIND)
    check_listed(manifest, path)
    data = read_settings_file(path / "recipe.yaml")
    recipe = check_settings(LabelRecipe, data, file=path / "recipe.yaml")
    tokenizer = load_fitting_tokenizers(path / "tokenizer", recipe.text).source
    labels = read_json(path / LABELS) if LABELS in manifest["files"] else None
    if (
        not isinstance(labels, list)
        or len(labels) < 2
        or not all(isinstance(label, str) for label in labels)
    ):
        raise CheckpointError(
            "is not a list of classes; use another copy of the bundle",
            "不是类别列表；请换用其他副本",
            file=path / LABELS,
        )
    with torch.device("meta"):
        check_shapes(
            new_labeller(recipe, size=tokenizer.size, num_classes=len(labels), generator=None),
            path / WEIGHTS,
        )
    model = new_labeller(recipe, size=tokenizer.size, num_classes=len(labels), generator=None)
    load_weights(model, path / WEIGHTS)
    return LabelBundle(
        path, recipe, tokenizer, tuple(labels), model.eval(), read_json(path / "results.json")
    )


def _model_card(recipe: AnyRecipe, labels: tuple[str, ...], results: Mapping[str, Any]) -> str:
    classes = f" Classes: {', '.join(labels)}." if labels else ""
    return f"""# {recipe.task.replace("_", " ").capitalize()}

Made by headwise {headwise.__version__}. Model: {recipe.model.kind}, width {getattr(recipe.model, "dim", 0)}.{classes} The whole recipe \
is in `recipe.yaml`.

## Results
{card_lines(results)}

## Limits
It knows what its training text taught it, and was measured only on the data named above.
"""
