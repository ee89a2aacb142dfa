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

from headwise.errors import CheckpointError
from headwise.settings import DEFAULT_TASK, check_settings, read_settings_file
from headwise.storage import (
    MANIFEST,
    publish_directory,
    read_json,
    read_manifest,
    verify_directory,
    verify_listed,
)
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.bundle_directory import find_bundle
from headwise.tasks.bundle_form import KIND, WORD_VECTORS, BundleForm
from headwise.tasks.recipe import write_recipe
from headwise.tasks.table import find_entry
from headwise.text.choices import TokenizerPair
from headwise.text.tokenizer import Tokenizer
from headwise.weights import Weights, check_shapes, load_weights, write_tensors

WEIGHTS, RECIPE, RESULTS = "weights.safetensors", "recipe.yaml", "results.json"
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
    why: Mapping[str, tuple[str, str]] | None = None,
) -> OpenedBundle[RecipeType]:
    """A verified bundle of a task; `why` says, by task, why a model of another one cannot
    answer."""
    form = recipe_type.bundle_form
    path = find_bundle(directory, recipe=None if form.is_demo else form.example)
    word = task_of_bundle(path)
    entry = find_entry(word)
    if entry is not None and entry.recipe_type is not recipe_type:
        reason = (why or {}).get(str(word), ("", ""))
        raise explain_task(word, form.noun, path, example=form.example, why=reason)
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


def task_of_bundle(path: Path) -> Any:
    """The task of a bundle.

    The recipe is compared with the manifest first, so that damage is not taken for another task.
    """
    manifest = read_manifest(path)
    if manifest["kind"] == WORD_VECTORS:
        return "word_vectors"
    if manifest["kind"] != KIND:
        verify_directory(path, kind=KIND)  # refuses it and says what it is
    check_listed(manifest, path, (RECIPE,))
    verify_listed(path, manifest, RECIPE)
    return read_settings_file(path / RECIPE).get("task", DEFAULT_TASK)


def explain_task(
    word: Any,
    noun: tuple[str, str],
    path: Path,
    *,
    example: str,
    why: tuple[str, str] = ("", ""),
) -> CheckpointError:
    """A bundle of another task than the command is for; `why` it cannot answer, in both
    languages."""
    entry = find_entry(word)
    found = f"a model of task {str(word)[:80]!r}", f"任务 {str(word)[:80]!r} 的模型"
    use = ("", "请")
    if entry is not None:
        found = entry.recipe_type.bundle_form.noun
        if entry.command:
            use = (
                f"use `headwise {entry.command}` with this one, or ",
                f"该模型请用 `headwise {entry.command}`，或",
            )
    train = f"headwise train {example} --run runs/{example}"
    reason = f" ({why[0]})" if why[0] else "", f"（{why[1]}）" if why[1] else ""
    return CheckpointError(
        f"is {found[0]}{reason[0]}, {noun[0]} is needed; {use[0]}train one, e.g. `{train}`",
        f"是{found[1]}{reason[1]}，需要{noun[1]}；{use[1]}训练一个，例如 `{train}`",
        file=path,
    )


def check_listed(manifest: Mapping[str, Any], path: Path, required: tuple[str, ...]) -> None:
    """A manifest may be whole and yet not that of a model."""
    for name in required:
        if name not in manifest["files"]:
            raise CheckpointError(
                f"does not list {name}, without which there is no model; "
                "use another copy of the bundle",
                f"没有列出 {name}，缺少它就不成其为模型；请换用其他副本",
                file=path / MANIFEST,
            )
