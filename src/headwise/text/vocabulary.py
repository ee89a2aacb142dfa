"""A vocabulary: a list of entries and their ids, for tokenizers of words and characters.

The most frequent entries are kept (ties are ordered by the entry itself, so that the result does
not depend on the order of the text); everything else becomes the unknown token. The four special
ids come first.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headwise.errors import CheckpointError
from headwise.storage import read_json, write_json
from headwise.text.tokenizer import NUM_SPECIAL, SPECIAL_PIECES, UNKNOWN

FILE = "vocabulary.json"
MAX_FILE_BYTES = 256 << 20
MAX_ENTRIES = 10_000_000
"""The largest text.size of a recipe."""


class Vocabulary:
    """Entries with ids from 4 on; `id_of` returns 3 for others."""

    def __init__(self, entries: Sequence[str]) -> None:
        self.entries = tuple(entries)
        self.ids: Mapping[str, int] = {
            entry: number + NUM_SPECIAL for number, entry in enumerate(self.entries)
        }
        assert len(self.ids) == len(self.entries), "entries must be distinct"

    def __len__(self) -> int:
        return len(self.entries) + NUM_SPECIAL

    def id_of(self, entry: str) -> int:
        return self.ids.get(entry, UNKNOWN)

    def entry_of(self, number: int) -> str:
        return (
            SPECIAL_PIECES[number] if number < NUM_SPECIAL else self.entries[number - NUM_SPECIAL]
        )

    def save(self, directory: Path, settings: Mapping[str, str | bool]) -> None:
        """Write the entries and the settings of the tokenizer (its kind first)."""
        write_json(directory / FILE, {**settings, "entries": list(self.entries)})


def most_frequent(counts: Counter[str], *, size: int, min_count: int) -> Vocabulary:
    """At most `size` ids (with special ones) for entries seen at least `min_count` times."""
    kept = [entry for entry, count in counts.items() if count >= min_count]
    kept.sort(key=lambda entry: (-counts[entry], entry))
    return Vocabulary(kept[: max(0, size - NUM_SPECIAL)])


def read_vocabulary(directory: Path) -> Any:
    """The content of the file, not yet checked."""
    # Some words hold a comma themselves.
    return read_json(directory / FILE, max_bytes=MAX_FILE_BYTES, max_items=MAX_ENTRIES * 5 // 4)


def load_vocabulary(directory: Path, *, kind: str) -> tuple[Vocabulary, dict[str, Any]]:
    """The vocabulary and the settings saved with it; damage is a CheckpointError."""
    path = directory / FILE
    data = read_vocabulary(directory)
    entries = data.get("entries") if isinstance(data, dict) else None
    if (
        not isinstance(entries, list)
        or data.get("kind") != kind
        or not all(isinstance(entry, str) for entry in entries)
        or len(set(entries)) != len(entries)
    ):
        raise CheckpointError(
            f"is not a {kind} vocabulary (a list of distinct entries is needed); use another copy "
            "of the model",
            f"不是 {kind} 词表（需要互不相同的条目列表）；请使用模型的其他副本",
            file=path,
        )
    return Vocabulary(entries), {key: value for key, value in data.items() if key != "entries"}
