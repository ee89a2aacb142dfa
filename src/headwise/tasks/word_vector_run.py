"""A run of word vectors: from a recipe to a bundle that proves itself, and back from the bundle to a space of words.

    runs/words/  recipe.yaml   model/ (vectors.safetensors words.json recipe.yaml results.json README.md MANIFEST.json)

The bundle appears whole or not at all. A run of minutes needs no checkpoints: stopped, it leaves nothing and is begun anew. Its place is
made before anything is learnt, so that one which cannot be written to costs no training; until the model is there the recipe is called
recipe.yaml.incomplete, which is all that a killed run leaves, and no obstacle to the next one.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import headwise
from headwise.errors import CheckpointError, UsageError
from headwise.language import say
from headwise.models.vector_space import VectorSpace
from headwise.settings import check_settings, read_settings_file
from headwise.storage import (
    INCOMPLETE,
    publish_directory,
    read_json,
    read_manifest,
    verify_directory,
    write_json,
    write_text,
)
from headwise.tasks.arguments import require_path
from headwise.tasks.bundle import KIND as BUNDLE
from headwise.tasks.bundle import WORD_VECTORS, explain_task, task_of
from headwise.tasks.bundle_directory import find_bundle
from headwise.tasks.events import Events, Silence
from headwise.tasks.recipe import write_recipe
from headwise.tasks.result_rows import card_lines
from headwise.tasks.training_cost import TrainingCost
from headwise.tasks.word_vector_recipe import WordVectorRecipe
from headwise.tasks.word_vectors import WordProgress, learn_word_vectors, read_text
from headwise.training.run_recipe import sealed_recipe
from headwise.weights import read_tensors, write_tensors

VECTORS, WORDS, RECIPE = "vectors.safetensors", "words.json", "recipe.yaml"
MAX_WORDS_BYTES, MAX_WORDS = 512 << 20, 20_000_000
CHECKED_WORDS = 100_000
"""Of a text, so many are learnt from for `--check`."""
MOST_LONE = 0.9
"""A text with a larger share of lines of one word is probably not cut into words."""


@dataclass(frozen=True)
class WordVectorBundle:
    """Trained or imported vectors."""

    directory: Path
    space: VectorSpace
    counts: np.ndarray | None
    """How often each word stood in the training text; None for imported vectors."""
    recipe: WordVectorRecipe | None
    results: Mapping[str, Any]


def train_word_vectors(
    recipe: WordVectorRecipe, *, run: str | Path, resume: bool = False, events: Events | None = None
) -> WordVectorBundle:
    """Train and save; returns the bundle."""
    if resume:
        raise UsageError(
            "word vectors are trained in one go and leave no checkpoint to go on from; train anew in another --run",
            "词向量一次训练完成，没有可供继续的检查点；请在另一个 --run 目录重新训练",
        )
    watcher = Silence() if events is None else events
    directory = require_path(run, "run", "runs/words")
    with _begun(directory, recipe):
        return _train(recipe, directory, watcher)


def _train(recipe: WordVectorRecipe, directory: Path, watcher: Events) -> WordVectorBundle:
    stream = read_text(recipe)
    watcher.note(
        say(
            f"{len(stream):,} words of text, {len(stream.words):,} different",
            f"文本共 {len(stream):,} 个词，{len(stream.words):,} 种",
        )
    )
    if stream.lone > MOST_LONE:
        watcher.note(
            say(
                f"{100 * stream.lone:.0f} % of the lines are one word, which has no neighbours: cut the text into words with spaces, or set "
                "text.unit=characters",
                f"{100 * stream.lone:.0f}% 的行只有一个词，没有相邻的词：请用空格把文本切成词，或设 text.unit=characters",
            )
        )
    last = WordProgress(0, 1, 0.0)

    def watch(progress: WordProgress) -> None:
        nonlocal last
        last = progress
        rate = say(f"words ({progress.rate:,.0f}/s)", f"词（{progress.rate:,.0f}/秒）")
        watcher.count(rate, progress.words, progress.total)

    tables = learn_word_vectors(stream, recipe, watch=watch)
    results = {
        "words": len(stream.words),
        "text_words": len(stream),
        "epochs": recipe.training.epochs,
        "training_seconds": round(last.seconds, 2),
        "words_per_second": round(last.rate),
    }
    space = VectorSpace(stream.words, tables.inputs.numpy(), text_words=len(stream))
    save_word_vectors(
        directory / "model", space, counts=stream.counts, recipe=recipe, results=results
    )
    return WordVectorBundle(directory / "model", space, stream.counts, recipe, results)


def check_word_vectors(recipe: WordVectorRecipe, *, events: Events | None = None) -> dict[str, int]:
    """Read the text and learn from a little of it, for the clock alone."""
    stream = read_text(recipe)
    cut = int(np.searchsorted(stream.ends, CHECKED_WORDS)) + 1
    part = replace(stream, ids=stream.ids[: stream.ends[:cut][-1]], ends=stream.ends[:cut])
    once = recipe.model_copy(update={"training": recipe.training.model_copy(update={"epochs": 1})})
    began = time.perf_counter()
    learn_word_vectors(part, once)
    seconds = (
        (time.perf_counter() - began) * recipe.training.epochs * len(stream) / max(1, len(part))
    )
    parameters = 2 * len(stream.words) * recipe.model.dim
    cost = TrainingCost(parameters, seconds, 4 * (parameters + len(stream)))
    return {"words": len(stream.words), "text_words": len(stream), **cost.tell(events or Silence())}


@contextlib.contextmanager
def _begun(directory: Path, recipe: WordVectorRecipe) -> Iterator[None]:
    """The directory of a run with its recipe in it; what was made for a run that fails is taken away again."""
    _require_new(directory)
    new = [path for path in (directory, *directory.parents) if not path.exists()]
    waiting = directory / f"{RECIPE}{INCOMPLETE}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_text(waiting, sealed_recipe(recipe.model_dump(mode="json")))
        yield
        os.replace(waiting, directory / RECIPE)
    except BaseException:
        with contextlib.suppress(OSError):
            waiting.unlink(missing_ok=True)
            for path in new:
                path.rmdir()
        raise


def _require_new(directory: Path) -> None:
    if not directory.exists():
        return
    if not directory.is_dir() or any(
        not path.name.endswith(INCOMPLETE) for path in directory.iterdir()
    ):
        raise UsageError(
            f"{directory} exists already; word vectors are trained in one go: choose another --run or remove it",
            f"{directory} 已存在；词向量一次训练完成：请换一个 --run 目录，或先删除它",
        )


def save_word_vectors(
    directory: Path,
    space: VectorSpace,
    *,
    counts: np.ndarray | None = None,
    recipe: WordVectorRecipe | None = None,
    results: Mapping[str, Any] | None = None,
) -> None:
    """Write a bundle."""
    with publish_directory(directory, kind=WORD_VECTORS) as temporary:
        write_tensors(temporary / VECTORS, {"vectors": torch.from_numpy(space.vectors)})
        write_json(
            temporary / WORDS,
            {"words": list(space.words), "counts": None if counts is None else counts.tolist()},
        )
        if recipe is not None:
            (temporary / "recipe.yaml").write_text(write_recipe(recipe), encoding="utf-8")
        write_json(temporary / "results.json", dict(results or {}))
        (temporary / "README.md").write_text(_card(space, recipe, results or {}), encoding="utf-8")


def load_word_vectors(directory: str | Path) -> WordVectorBundle:
    """A verified bundle: the directory itself, or a run with one inside."""
    path = find_bundle(
        require_path(directory, "directory", "runs/words/model"), recipe="word-vectors"
    )
    if read_manifest(path)["kind"] == BUNDLE:
        raise explain_task(
            task_of(path), "a model of word vectors", "词向量模型", "word-vectors", path
        )
    manifest = verify_directory(path, kind=WORD_VECTORS)
    tensors = read_tensors(path / VECTORS)
    entries = read_json(path / WORDS, max_bytes=MAX_WORDS_BYTES, max_items=2 * MAX_WORDS)
    vectors, words = (
        tensors.get("vectors"),
        entries.get("words") if isinstance(entries, dict) else None,
    )
    if (
        vectors is None
        or vectors.dim() != 2
        or not isinstance(words, list)
        or len(words) != len(vectors)
        or len(set(words)) != len(words)
    ):
        raise CheckpointError(
            "words and vectors do not fit together; use another copy of the model",
            "词与向量不相符；请换用模型的其他副本",
            file=path,
        )
    counts = None if entries["counts"] is None else np.array(entries["counts"])
    recipe = None
    if "recipe.yaml" in manifest["files"]:
        recipe = check_settings(
            WordVectorRecipe, read_settings_file(path / "recipe.yaml"), file=path / "recipe.yaml"
        )
    results = read_json(path / "results.json")
    text_words = results.get("text_words")
    space = VectorSpace(
        words, vectors.numpy(), text_words=text_words if isinstance(text_words, int) else None
    )
    return WordVectorBundle(path, space, counts, recipe, results)


def _card(space: VectorSpace, recipe: WordVectorRecipe | None, results: Mapping[str, Any]) -> str:
    made = (
        "Imported"
        if recipe is None
        else f"Trained ({recipe.model.kind}, {recipe.model.output.kind})"
    )
    return f"""# Word vectors

{made} with headwise {headwise.__version__}: {len(space.words):,} words of {space.dim} numbers.

{card_lines(results)}

```bash
headwise nearest king --model DIR
```

One vector a word, whatever it means in a sentence; it repeats the habits of its training text, prejudices included.
"""
