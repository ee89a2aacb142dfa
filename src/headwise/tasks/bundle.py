"""Bundles: saving, checking and opening the directory that holds everything a trained model needs.

    model/  weights.safetensors   recipe.yaml (resolved)   results.json   README.md   MANIFEST.json
            and files of the task: tokenizer/, labels.json …

Tensors are safetensors, the rest is text; nothing is ever unpickled. Opening a bundle first checks
every file against the SHA-256 sums in its manifest, then reads the recipe. The task then checks its
own files, and that each weight has the expected name and shape. All tasks save and open their
bundles with this file.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import nn

from headwise.settings import check_settings, read_settings_file
from headwise.storage import publish_directory, read_json, verify_directory
from headwise.tasks.accepted_models import AcceptedModels, check_listed
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.bundle_form import RECIPE, BundleForm
from headwise.tasks.recipe import write_recipe
from headwise.text.choices import TokenizerPair
from headwise.text.tokenizer import Tokenizer
from headwise.weights import Weights, check_shapes, load_weights, write_tensors

WEIGHTS, RESULTS = "weights.safetensors", "results.json"
TOKENIZER = "tokenizer"
RecipeType = TypeVar("RecipeType", bound=AnyRecipe)
Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class OpenedBundle(Generic[RecipeType]):
    """A bundle whose files are whole and whose recipe is valid."""

    directory: Path
    recipe: RecipeType
    results: Mapping[str, Any]
    files: Mapping[str, Any]
    """Of the manifest, by their paths."""

    def load_weights(self, build: Callable[[], Model]) -> Model:
        """The model with its weights, on the CPU.

        It is built on the meta device first, where it takes no memory: a recipe that does not fit
        its weights is refused before anything of its size is allocated.
        """
        file = self.directory / WEIGHTS
        with torch.device("meta"):
            check_shapes(build(), file)
        module = build()
        load_weights(module, file)
        return module.eval()


def write_bundle(
    directory: Path,
    *,
    form: BundleForm,
    recipe: AnyRecipe | None,
    weights: Weights,
    results: Mapping[str, Any],
    card: str,
    write_parts: Callable[[Path], None],
    replace: bool = True,
) -> None:
    """Write a bundle; with `replace` an older one of the same name makes way at the last moment."""
    with publish_directory(directory, kind=form.kind, replace=replace) as temporary:
        write_tensors(temporary / form.weights_file, weights)
        if recipe is not None:
            (temporary / RECIPE).write_text(write_recipe(recipe), encoding="utf-8")
        write_parts(temporary)
        text = json.dumps(results, ensure_ascii=False, indent=2)
        (temporary / RESULTS).write_text(text, encoding="utf-8")
        (temporary / "README.md").write_text(card, encoding="utf-8")


def open_bundle(
    directory: Path,
    recipe_type: type[RecipeType],
    *,
    accepted: AcceptedModels | None = None,
) -> OpenedBundle[RecipeType]:
    """A verified bundle of a task; `accepted` if more is to be said about models of other tasks."""
    form = recipe_type.bundle_form
    path = (accepted or AcceptedModels.of(form)).find(directory)
    manifest = verify_directory(path, kind=form.kind)
    check_listed(manifest, path, form.required_files)
    file = path / RECIPE
    recipe = check_settings(recipe_type, read_settings_file(file), file=file)
    return OpenedBundle(path, recipe, read_json(path / RESULTS), manifest["files"])


def save_tokenizers(tokenizers: TokenizerPair, folder: Path) -> None:
    """The part of a bundle that turns text into tokens and back."""
    (folder / TOKENIZER).mkdir()
    tokenizers.save(folder / TOKENIZER)


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """The same for a model that reads one language."""
    save_tokenizers(TokenizerPair(tokenizer, tokenizer, shared=True), folder)
