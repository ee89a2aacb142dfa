"""`MemoryReader`: how the building of a memory sees a finished model that reads text, and the
fingerprint by which a store knows its model.

A language model reads lines (language/memory.py), a translator pairs (translation/pair_reader.py).
The fingerprint is that of the weights and tokenizers, so a copy of a bundle has the same memory and
another training has not.
Tested through the commands, for both tasks.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from torch import Tensor

from headwise.neighbours.writing import StoredLine
from headwise.storage import read_manifest


@dataclass(frozen=True)
class ReadBlock:
    """Some lines of the texts with their states; `read`: lines of all texts that are done."""

    lines: Sequence[StoredLine]
    read: int


@dataclass(frozen=True)
class Predicted:
    """Tokens of a text: the model's log-probability of each, and the state it was predicted by."""

    scores: Tensor
    tokens: Tensor
    keys: Tensor


class MemoryReader(Protocol):
    """A finished model that reads text."""

    key: str
    dim: int

    def count(self, texts: Sequence[str]) -> int:
        """Lines of the texts; texts that cannot be read are refused."""
        ...

    def read(self, texts: Sequence[str], *, skip: int) -> Iterator[ReadBlock]:
        """Blocks of lines with their states, after the first `skip` lines, at a border of
        blocks."""
        ...

    def predict(self, texts: Sequence[str]) -> Iterator[Predicted]:
        """What the model alone predicts for the tokens of the texts, block by block."""
        ...


def fingerprint_of(bundle: Path) -> str:
    """SHA-256 over what decides the states of a model: its weights and tokenizers."""
    files = read_manifest(bundle)["files"]
    parts = [
        f"{name} {entry['sha256']}"
        for name, entry in sorted(files.items())
        if name.endswith(".safetensors") or name.startswith("tokenizer/")
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
