"""Small stores with keys that a test chooses."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from headwise.neighbours.store import NeighbourStore, StoredModel
from headwise.neighbours.writing import EntryWriter, StoredLine

REQUEST = {"texts": ["made"], "lines": 3}


def model_of(dim: int, fingerprint: str = "f" * 64, key_type: str = "float32") -> StoredModel:
    return StoredModel(fingerprint, "language_modeling", "output", dim, key_type, "runs/made")


def line_of(number: int, keys: torch.Tensor, tokens: Sequence[int]) -> StoredLine:
    source, target = f"source {number} ä", f"target {number} 词"
    return StoredLine("made.txt", number, source, target, keys.numpy(), np.array(tokens))


def make_store(folder: Path, keys: torch.Tensor, tokens: torch.Tensor) -> NeighbourStore:
    """A store in shards of two lines, each line of three entries."""
    writer = EntryWriter.begin(folder, model_of(keys.shape[1]), REQUEST)
    writer.shard_entries = 6
    for number, (some, values) in enumerate(zip(keys.split(3), tokens.split(3), strict=True)):
        writer.add([line_of(number + 1, some, values.tolist())], read=number + 1)
    writer.finish(read=number + 1)
    return NeighbourStore.open(folder)
