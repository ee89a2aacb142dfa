"""Writes a store of neighbours shard by shard, so that a kill loses at most the shard at work.

Nothing is written before the first shard is full, so texts that cannot be stored leave nothing.
A shard is written to temporary files that are flushed and renamed. Then the manifest is replaced in
one step; it lists the new files and says how many lines of which text have been read. So the store
on disk always is what its manifest says, plus perhaps files that it does not list; these are
removed when the build goes on. Blocks of lines are the unit that is read, so a build that was
interrupted writes the same shards as one that was not.

Tested: a build killed after any shard and continued gives the same files; a refused text leaves
none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.errors import CheckpointError, UsageError
from headwise.neighbours.settings import Mixing
from headwise.neighbours.store import (
    COLUMNS,
    KEY_TYPES,
    KIND,
    REMEDY,
    StoredModel,
    StoreHeader,
    StoreShard,
    read_header,
    require_store,
)
from headwise.storage import (
    FORMAT_VERSION,
    MANIFEST,
    publish_file,
    read_manifest,
    sha256_of,
    write_sealed_json,
)

SHARD_BYTES = 64 << 20
"""Keys of a shard; as much is held in memory while it is filled."""


@dataclass(frozen=True)
class StoredLine:
    """A line of text with the states of its tokens."""

    corpus: str
    line: int
    source: str
    target: str
    keys: NDArray[np.floating[Any]]
    values: NDArray[np.integer[Any]]


class EntryWriter:
    """Appends entries to a store."""

    def __init__(self, directory: Path, header: StoreHeader, files: dict[str, Any]) -> None:
        self.directory, self.header, self._files = directory, header, files
        self._waiting: list[StoredLine] = []
        self._num_waiting = 0
        item = int(KEY_TYPES[header.model.key_type][-1])
        self.shard_entries = max(1, SHARD_BYTES // (item * header.model.dim))

    @staticmethod
    def begin(directory: Path, model: StoredModel, request: dict[str, Any]) -> "EntryWriter":
        """A new store, or one whose build by the same request was interrupted."""
        is_sealed = (directory / MANIFEST).is_file()
        if is_sealed and read_manifest(directory, remedy=REMEDY)["kind"] == KIND:
            writer = EntryWriter._open(directory)
            if writer.header.unfinished is None or writer.request != request:
                raise UsageError(
                    f"{directory} exists already; add to it with `headwise memory add`, or choose "
                    "another name",
                    f"{directory} 已存在；请用 `headwise memory add` 追加，或换一个名字",
                )
            _check_same(writer, model)
            return writer
        if directory.exists() and any(directory.iterdir()):
            raise UsageError(
                f"{directory} exists already and is no store of neighbours; choose another name",
                f"{directory} 已存在且不是近邻存储；请换一个名字",
            )
        begun = StoreHeader(model, (), (), None, unfinished={"request": request, "read": 0})
        return EntryWriter(directory, begun, {})

    @staticmethod
    def extend(directory: Path, model: StoredModel, request: dict[str, Any]) -> "EntryWriter":
        """A whole store to which entries are added, or one whose extension was interrupted."""
        writer = EntryWriter._open(directory)
        _check_same(writer, model)
        if writer.header.unfinished is None:
            unfinished = {"request": request, "read": 0}
            writer.header = replace(writer.header, unfinished=unfinished)
        elif writer.request != request:
            raise UsageError(
                f"{directory} is being built from other texts; run that command again first",
                f"{directory} 正由另外的文本建立；请先再次运行那个命令",
            )
        return writer

    @staticmethod
    def _open(directory: Path) -> "EntryWriter":
        manifest = read_manifest(directory, remedy=REMEDY)
        if manifest["kind"] != KIND:
            raise CheckpointError(
                "is not that of a store of neighbours; give another directory",
                "不属于近邻存储；请换一个目录",
                file=directory / MANIFEST,
            )
        header = read_header(directory, manifest)
        for path in directory.iterdir():  # of a shard that was at work
            is_shard = path.suffix.removeprefix(".") in COLUMNS or ".incomplete" in path.name
            if path.is_file() and path.name not in manifest["files"] and is_shard:
                path.unlink()
        return EntryWriter(directory, header, dict(manifest["files"]))

    @staticmethod
    def read(directory: Path) -> StoredModel:
        """Of which model a store is that is to be extended."""
        return EntryWriter._open(require_store(directory)).header.model

    @property
    def request(self) -> dict[str, Any]:
        """What the build at work was asked for."""
        assert self.header.unfinished is not None
        return self.header.unfinished["request"]

    @property
    def num_read(self) -> int:
        """Lines of the texts that are in the store, or were left out."""
        assert self.header.unfinished is not None
        return self.header.unfinished["read"]

    def add(self, lines: Sequence[StoredLine], *, read: int) -> None:
        """A block of lines; `read` lines of the texts have been read with it."""
        self._waiting += lines
        self._num_waiting += sum(len(one.values) for one in lines)
        if self._num_waiting >= self.shard_entries:
            self._write(read)

    def finish(self, *, read: int) -> StoreHeader:
        """Write what is left; the store is whole from now on. Without an entry there is none."""
        if self._waiting:
            self._write(read)
        if self.header.shards:
            self._note(None)
        return self.header

    def _write(self, read: int) -> None:
        name = f"{len(self.header.shards):05}"
        columns, corpora = self._columns()
        # Known before its first file is there, so that a build killed from here on can go on.
        self.directory.mkdir(parents=True, exist_ok=True)
        self._note(self.header.unfinished)
        for column, array in columns.items():
            file = self.directory / f"{name}.{column}"
            with publish_file(file) as temporary:
                array.tofile(temporary)
            self._files[file.name] = {"bytes": file.stat().st_size, "sha256": sha256_of(file)}
        shard = StoreShard(
            name, len(columns["values"]), len(columns["lines"]), len(columns["text"])
        )
        self.header = replace(self.header, shards=(*self.header.shards, shard), corpora=corpora)
        self._waiting, self._num_waiting = [], 0
        self._note({"request": self.request, "read": read})

    def _columns(self) -> tuple[dict[str, NDArray[Any]], tuple[str, ...]]:
        corpora = list(self.header.corpora)
        rows, texts, end = [], [], 0
        for one in self._waiting:
            if one.corpus not in corpora:
                corpora.append(one.corpus)
            source, target = one.source.encode(), one.target.encode()
            middle, end = end + len(source), end + len(source) + len(target)
            rows.append((corpora.index(one.corpus), one.line, middle, end))
            texts += [source, target]
        counts = [len(one.values) for one in self._waiting]
        places = np.stack(
            [
                np.repeat(np.arange(len(counts)), counts),
                np.concatenate(list(map(np.arange, counts))),
            ]
        )
        columns = {
            "keys": np.concatenate([one.keys for one in self._waiting]),
            "values": np.concatenate([one.values for one in self._waiting]),
            "places": places.T,
            "lines": np.array(rows),
            "text": np.frombuffer(b"".join(texts), dtype=np.uint8),
        }
        key_type = KEY_TYPES[self.header.model.key_type]
        with np.errstate(over="ignore"):  # it is looked at below
            made = {
                name: np.ascontiguousarray(array, dtype=COLUMNS[name] or key_type)
                for name, array in columns.items()
            }
        if not np.isfinite(made["keys"]).all():
            raise UsageError(
                "a state of the model is not finite as float16; build the store with --keys "
                "float32",
                "模型的某个状态以 float16 表示时溢出；请用 --keys float32 建立",
            )
        return made, tuple(corpora)

    def _note(self, unfinished: Mapping[str, Any] | None) -> None:
        self.header = replace(self.header, unfinished=unfinished)
        write_header(self.directory, self.header, self._files)


def write_header(directory: Path, header: StoreHeader, files: dict[str, Any]) -> None:
    """Replace the manifest in one step."""
    fixed = {"format": FORMAT_VERSION, "kind": KIND, "files": files}
    write_sealed_json(directory / MANIFEST, {**fixed, **header.as_manifest()})


def write_tuning(directory: Path, mixing: Mixing, measured: dict[str, Any]) -> None:
    """Keep the chosen settings in the store, with what was measured."""
    manifest = read_manifest(directory, remedy=REMEDY)
    header = read_header(directory, manifest)
    tuning = {"mixing": mixing.model_dump(mode="json"), **measured}
    write_header(directory, replace(header, tuning=tuning), dict(manifest["files"]))


def _check_same(writer: EntryWriter, model: StoredModel) -> None:
    own = writer.header.model
    if (own.fingerprint, own.key_type) != (model.fingerprint, model.key_type):
        raise UsageError(
            f"{writer.directory} was begun with another model ({own.path}) or other --keys; give "
            "the same ones, or choose another name",
            f"{writer.directory} 是用另一个模型（{own.path}）或另一种 --keys 开始的；"
            "请给出相同的，或换一个名字",
        )
