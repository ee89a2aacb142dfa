"""Stores of token pairs and untrained translators, written as a training writes them.

Benchmarks and tests measure what a training or a server would read, without a training before it.
Everything is written by the same functions as in `headwise train`.
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headwise.data.batching import plan_rows
from headwise.data.pairs.preparation import PreparedData
from headwise.data.shards import Side, StoreWriter, TokenStore, as_ragged
from headwise.models.translation_model import TranslationModel
from headwise.tasks.table import find_task
from headwise.tasks.task_bundle import write_task_bundle
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.choices import TokenizerPair
from headwise.weights import weights_of


def write_store(
    directory: Path,
    pairs: Iterable[tuple[Sequence[int], Sequence[int]]],
    *,
    vocabulary_sizes: dict[Side, int],
    block: int = 4096,
) -> TokenStore:
    """A store of one corpus from pairs of id lists, `block` pairs at a time."""
    with StoreWriter(directory, vocabulary_sizes=vocabulary_sizes) as writer:
        writer.start_corpus("pairs")
        sources: list[Sequence[int]] = []
        targets: list[Sequence[int]] = []
        for source, target in pairs:
            sources.append(source)
            targets.append(target)
            if len(sources) == block:
                writer.add(as_ragged(sources), as_ragged(targets))
                sources, targets = [], []
        writer.add(as_ragged(sources), as_ragged(targets))
    return TokenStore(directory)


def plan_row_lengths(store: TokenStore, row_tokens: int) -> tuple[int, int]:
    """Lengths of source and target rows (see `plan_rows`) in which every stored pair fits."""
    totals = {side: store.total_tokens[side] + len(store) for side in store.total_tokens}
    source, target = plan_rows(totals["source"], totals["target"], row_tokens)
    longest = {side: -(-(length + 1) // 8) * 8 for side, length in store.max_length.items()}
    return max(source, longest["source"]), max(target, longest["target"])


def save_untrained(
    directory: Path,
    *,
    recipe: TranslationRecipe,
    tokenizers: TokenizerPair,
    model: TranslationModel,
    results: Mapping[str, Any] | None = None,
) -> None:
    """The bundle of a translator as the end of a training would write it."""
    sizes: dict[Side, int] = {"source": tokenizers.source.size, "target": tokenizers.target.size}
    with tempfile.TemporaryDirectory() as scratch:
        store = write_store(Path(scratch) / "train", [([4], [4])], vocabulary_sizes=sizes)
        prepared = PreparedData(tokenizers, store, None, 8, 8, vocabulary="")
        write_task_bundle(
            directory,
            find_task(recipe),
            recipe,
            prepared,
            weights=weights_of(model),
            results=results or {},
        )
