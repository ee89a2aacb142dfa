"""Saves and opens the bundle of word vectors: a table of vectors and the words of its rows.

    model/  vectors.safetensors   words.json   recipe.yaml   results.json
            README.md   MANIFEST.json

Vectors of other tools can be imported; such a bundle has no recipe and no counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headwise.errors import CheckpointError
from headwise.models.vector_space import VectorSpace
from headwise.settings import check_settings, read_settings_file
from headwise.storage import read_json, verify_directory, write_json
from headwise.tasks.arguments import require_path
from headwise.tasks.bundle import write_bundle
from headwise.tasks.model_card import model_card
from headwise.tasks.word_vectors.form import FORM, VECTOR_BUNDLES
from headwise.tasks.word_vectors.recipe import WordVectorRecipe
from headwise.weights import read_tensors

VECTORS, WORDS = FORM.weights_file, "words.json"
MAX_WORDS_BYTES, MAX_WORDS = 512 << 20, 20_000_000
CARD_USE = """```bash
headwise nearest king --model DIR
```

A word has one vector, whatever it means in a sentence; the vectors repeat the habits of their
training text, prejudices included."""


@dataclass(frozen=True)
class WordVectorBundle:
    """Trained or imported vectors."""

    directory: Path
    space: VectorSpace
    counts: np.ndarray | None
    """How often each word stood in the training text; None for imported vectors."""
    recipe: WordVectorRecipe | None
    results: Mapping[str, Any]


def save_word_vectors(
    directory: Path, space: VectorSpace, *, results: Mapping[str, Any] | None = None
) -> None:
    """Write a bundle of vectors that were not trained here; a directory that exists is refused."""
    write_bundle(
        directory,
        form=FORM,
        recipe=None,
        weights={"vectors": torch.from_numpy(space.vectors)},
        results=dict(results or {}),
        card=model_card(
            "Word vectors",
            details=f"Imported: {len(space.words):,} words of {space.dim} dimensions.",
            use=CARD_USE,
            results=results or {},
            data={},
        ),
        write_parts=lambda folder: write_words(folder, space.words, None),
        replace=False,
    )


def write_words(folder: Path, words: Sequence[str], counts: np.ndarray | None) -> None:
    """The words of the rows, and how often each was seen."""
    listed = None if counts is None else counts.tolist()
    write_json(folder / WORDS, {"words": list(words), "counts": listed})


def load_word_vectors(directory: str | Path) -> WordVectorBundle:
    """A verified bundle: the directory itself, or a run with one inside."""
    given = require_path(directory, "directory", "runs/words/model")
    path = VECTOR_BUNDLES.find(given)
    manifest = verify_directory(path, kind=FORM.kind)
    tensors = read_tensors(path / VECTORS)
    entries = read_json(path / WORDS, max_bytes=MAX_WORDS_BYTES, max_items=2 * MAX_WORDS)
    vectors = tensors.get("vectors")
    words = entries.get("words") if isinstance(entries, dict) else None
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
    recipe, file = None, path / "recipe.yaml"
    if file.name in manifest["files"]:
        recipe = check_settings(WordVectorRecipe, read_settings_file(file), file=file)
    results = read_json(path / "results.json")
    seen = results.get("text_words")
    space = VectorSpace(words, vectors.numpy(), text_words=seen if isinstance(seen, int) else None)
    return WordVectorBundle(path, space, counts, recipe, results)
