"""Opens a store of neighbours: for each token of a text the state before it (the key) and the token
(the value), with the line it stands in.

    store/  MANIFEST.json                       what is here, its checksums, of which model
            00000.keys   00000.values           [entries, dim] float16 or float32, [entries] int32
            00000.places                        [entries, 2] int32: line of the shard, position
            00000.lines  00000.text             [lines, 4] int64: corpus, line, end of source and
                                                of target in the text

The manifest is sealed by its own checksum and names the fingerprint of the model. Every file is
checked against it before it is used; keys are memory-mapped, so that memory does not grow with the
store (search.py decides what it holds).

Khandelwal et al. 2020 (kNN-LM) and 2021 (kNN-MT).
Tested: what was written is read; every file with a flipped byte is refused; another model's store
is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.errors import CheckpointError, UsageError
from headwise.neighbours.settings import Mixing
from headwise.settings import check_settings
from headwise.storage import MANIFEST, read_manifest, verify_directory

KIND = "neighbours"
KEY_TYPES = {"float16": "<f2", "float32": "<f4"}
REMEDY = (
    "use another copy of the store or build it again",
    "请换用其他副本或重新建立",
)
"""What to do about damage."""
COLUMNS = {"keys": None, "values": "<i4", "places": "<i4", "lines": "<i8", "text": "u1"}


@dataclass(frozen=True)
class StoredModel:
    """Of which model a store is, and what its keys are."""

    fingerprint: str
    """SHA-256 over the weights and tokenizers of the model."""
    task: str
    key: str
    """The layer whose input is the key: `feed_forward` (the last one) or `output`."""
    dim: int
    key_type: str
    path: str
    """Where the model was when the store was built."""


@dataclass(frozen=True)
class StoreShard:
    """One part of a store, as the manifest lists it."""

    name: str
    entries: int
    lines: int
    text_bytes: int


@dataclass(frozen=True)
class StoredEntry:
    """One entry, to be shown: the token, and where it comes from."""

    number: int
    token: int
    position: int
    corpus: str
    line: int
    source: str
    """Of a language model's store empty."""
    target: str
    """The sentence that the token stands in."""


@dataclass(frozen=True)
class StoreHeader:
    """The content of a manifest, checked."""

    model: StoredModel
    shards: tuple[StoreShard, ...]
    corpora: tuple[str, ...]
    tuning: Mapping[str, Any] | None
    """What `headwise memory tune` chose and measured."""
    unfinished: Mapping[str, Any] | None
    """Where an interrupted build stands."""

    @property
    def num_entries(self) -> int:
        return sum(one.entries for one in self.shards)

    @property
    def num_lines(self) -> int:
        return sum(one.lines for one in self.shards)

    @property
    def mixing(self) -> Mixing:
        """The settings that the store was tuned to, or the defaults."""
        return check_settings(Mixing, {} if self.tuning is None else self.tuning["mixing"])

    def as_dict(self) -> dict[str, Any]:
        """What a user may want to know."""
        return {
            "entries": self.num_entries,
            "lines": self.num_lines,
            "corpora": list(self.corpora),
            "model": dict(self.model.__dict__),
            "search": "exact",
            "mixing": self.mixing.model_dump(mode="json"),
            "tuning": self.tuning,
        }

    def as_manifest(self) -> dict[str, Any]:
        return {
            "model": dict(self.model.__dict__),
            "shards": [dict(one.__dict__) for one in self.shards],
            "corpora": list(self.corpora),
            "tuning": self.tuning,
            "unfinished": self.unfinished,
        }


def read_header(directory: Path, manifest: Mapping[str, Any]) -> StoreHeader:
    """The header in a manifest whose seal is right."""
    try:
        header = StoreHeader(
            StoredModel(**manifest["model"]),
            tuple(StoreShard(**one) for one in manifest["shards"]),
            tuple(map(str, manifest["corpora"])),
            manifest["tuning"],
            manifest["unfinished"],
        )
        sizes = [size for one in header.shards for size in _sizes(header, one).items()]
        fits = all(manifest["files"][name]["bytes"] == size for name, size in sizes)
    except (KeyError, TypeError) as error:
        raise _damaged(directory) from error
    if not fits or header.model.key_type not in KEY_TYPES:
        raise _damaged(directory)
    return header


def _sizes(header: StoreHeader, shard: StoreShard) -> dict[str, int]:
    """The bytes that each file of a shard must have."""
    item = int(KEY_TYPES[header.model.key_type][-1])
    sizes = {
        "keys": shard.entries * header.model.dim * item,
        "values": shard.entries * 4,
        "places": shard.entries * 8,
        "lines": shard.lines * 32,
        "text": shard.text_bytes,
    }
    return {f"{shard.name}.{column}": size for column, size in sizes.items()}


def require_store(path: Path) -> Path:
    """A directory with a manifest; what the manifest says is read later."""
    if not (path / MANIFEST).is_file():
        raise CheckpointError(
            "is not a store of neighbours; make one with `headwise memory build MODEL --output "
            f"{path} TEXT`",
            f"不是近邻存储；请用 `headwise memory build MODEL --output {path} TEXT` 生成",
            file=path,
        )
    return path


class NeighbourStore:
    """A whole store, opened for reading."""

    def __init__(self, directory: Path, header: StoreHeader) -> None:
        self.directory, self.header = directory, header
        self._ends = np.cumsum([shard.entries for shard in header.shards])

    @staticmethod
    def open(directory: Path | str) -> "NeighbourStore":
        """A store whose files are all as they were written."""
        path = require_store(Path(directory))
        manifest = read_manifest(path, remedy=REMEDY)
        if manifest["kind"] != KIND:
            verify_directory(path, kind=KIND)  # refuses it and says what it is
        header = read_header(path, manifest)
        if header.unfinished is not None:
            raise UsageError(
                f"{path} is not finished ({header.num_entries:,} entries so far); run the command "
                "that builds it again, it goes on where it stopped",
                f"{path} 尚未建完（已有 {header.num_entries:,} 条）；"
                "请再次运行建立它的命令，它会从中断处继续",
            )
        verify_directory(path, kind=KIND, remedy=REMEDY)
        if not header.num_entries:
            raise UsageError(
                f"{path} has no entry; build it from a text with at least one line",
                f"{path} 中没有任何条目；请用至少一行的文本建立",
            )
        return NeighbourStore(path, header)

    def __len__(self) -> int:
        return self.header.num_entries

    @cached_property
    def values(self) -> NDArray[np.int64]:
        """The token of every entry."""
        parts = [self._map(shard, "values") for shard in self.header.shards]
        return np.concatenate(parts).astype(np.int64)

    def key_blocks(self, size: int) -> "Sequence[tuple[int, NDArray[Any]]]":
        """(number of the first entry, keys) of blocks of at most `size` entries, not yet read."""
        blocks, first = [], 0
        for shard in self.header.shards:
            keys = self._map(shard, "keys")
            for begin in range(0, shard.entries, size):
                blocks.append((first + begin, keys[begin : begin + size]))
            first += shard.entries
        return blocks

    def show(self, number: int) -> StoredEntry:
        """One entry with the text it comes from."""
        place = int(np.searchsorted(self._ends, number, side="right"))
        shard = self.header.shards[place]
        row = number - int(self._ends[place]) + shard.entries
        line, position = self._map(shard, "places")[row].tolist()
        lines, text = self._map(shard, "lines"), self._map(shard, "text")
        corpus, count, middle, end = lines[line].tolist()
        begin = int(lines[line - 1][3]) if line else 0
        source, target = (
            bytes(text[part]).decode("utf-8", errors="replace")
            for part in (slice(begin, middle), slice(middle, end))
        )
        token = int(self._map(shard, "values")[row])
        name = self.header.corpora[corpus]
        return StoredEntry(number, token, position, name, count, source, target)

    def check_model(self, fingerprint: str, task: str, *, model: Path | str) -> None:
        """Refuse a model whose states are not those of the store."""
        own = self.header.model
        if own.task != task:
            raise UsageError(
                f"{self.directory} is the memory of a model of task {own.task}, and {model} is of "
                f"task {task}; build one with this model",
                f"{self.directory} 是任务 {own.task} 的模型的记忆，而 {model} 的任务是 {task}；"
                "请用该模型建立",
            )
        if own.fingerprint != fingerprint:
            raise UsageError(
                f"{self.directory} is the memory of another model ({own.path}), whose states mean "
                f"nothing to {model}; build one with this model: `headwise memory build`",
                f"{self.directory} 是另一个模型（{own.path}）的记忆，其状态对 {model} 没有意义；"
                "请用该模型建立：`headwise memory build`",
            )

    def _map(self, shard: StoreShard, column: str) -> NDArray[Any]:
        kind = COLUMNS[column] or KEY_TYPES[self.header.model.key_type]
        shapes = {
            "keys": (shard.entries, self.header.model.dim),
            "values": (shard.entries,),
            "places": (shard.entries, 2),
            "lines": (shard.lines, 4),
            "text": (shard.text_bytes,),
        }
        if not np.prod(shapes[column]):
            return np.zeros(shapes[column], dtype=kind)
        path = self.directory / f"{shard.name}.{column}"
        return np.memmap(path, dtype=kind, mode="r", shape=shapes[column])


def _damaged(directory: Path) -> CheckpointError:
    return CheckpointError(
        f"is damaged (its parts do not fit together); {REMEDY[0]}",
        f"已损坏（各部分不吻合）；{REMEDY[1]}",
        file=directory / MANIFEST,
    )
