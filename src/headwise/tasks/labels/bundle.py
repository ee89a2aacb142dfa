"""Saves and opens the bundle of a classifier or tagger, or of a pre-trained encoder, whose list of
labels is empty.

    model/  weights.safetensors   recipe.yaml   tokenizer/   labels.json   results.json
            README.md   MANIFEST.json

It is the bundle of `tasks/bundle.py` with `labels.json`, the list of labels.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from headwise.errors import CheckpointError
from headwise.models.labeller import LabelModel, Pooling, build_labeller
from headwise.storage import read_json
from headwise.tasks.bundle import open_bundle
from headwise.tasks.labels.recipe import LabelRecipe
from headwise.text.choices import load_fitting_tokenizers
from headwise.text.tokenizer import Tokenizer

WEIGHTS, LABELS = "weights.safetensors", "labels.json"
LABEL_TASKS = ("classification", "tagging")


@dataclass(frozen=True)
class LabelBundle:
    """A labeller's parts."""

    directory: Path
    recipe: LabelRecipe
    tokenizer: Tokenizer
    labels: tuple[str, ...]
    model: LabelModel
    results: Mapping[str, Any]


def new_labeller(
    recipe: LabelRecipe, *, size: int, num_classes: int, generator: torch.Generator | None
) -> LabelModel:
    """The model of a recipe for a vocabulary and classes."""
    pooling: Pooling = recipe.model.pooling if recipe.shape == "one" else "none"
    return build_labeller(
        recipe.model,
        vocabulary_size=size,
        num_classes=num_classes,
        pooling=pooling,
        generator=generator,
    )


def load_label_bundle(directory: Path) -> LabelBundle:
    """A verified labeller, on the CPU and ready to answer."""
    opened = open_bundle(directory, LabelRecipe)
    recipe, path = opened.recipe, opened.directory
    tokenizer = load_fitting_tokenizers(path / "tokenizer", recipe.text).source
    labels = read_json(path / LABELS)
    is_list = isinstance(labels, list) and all(isinstance(label, str) for label in labels)
    if not is_list or len(labels) < 2:
        raise CheckpointError(
            "is not a list of classes; use another copy of the bundle",
            "不是类别列表；请换用其他副本",
            file=path / LABELS,
        )
    model = opened.load_weights(
        lambda: new_labeller(recipe, size=tokenizer.size, num_classes=len(labels), generator=None)
    )
    return LabelBundle(path, recipe, tokenizer, tuple(labels), model, opened.results)
