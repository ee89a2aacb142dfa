"""Stores token ids of sentence pairs on disk, memory-mapped: a corpus of any size in little memory.

Each side is one file of token ids (uint16 if the vocabulary is small enough, else uint32) and one
file of int64 offsets:

    source(i) = tokens[offsets[i] : offsets[i + 1]]

The writer streams blocks through buffers of fixed size and publishes the directory at once with
checksums (`storage/`). The SHA-256 of the manifest is the fingerprint of the store; a resumed run
compares it. Pairs of several corpora are stored one corpus after another, so that `order.py` can
mix them by weight.

Tested against: the lists that were written, for every block size.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self

import numpy as np

from headwise.errors import CheckpointError, DataError
from headwise.storage import (
    manifest_digest,
    publish_directory,
    read_json,
    verify_directory,
    write_json,
)

KIND = "token store"
DESCRIPTION = "store.json"
Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")


@dataclass(frozen=True)
class CorpusRange:
    """One corpus of a store: its name, number of pairs, and how often each is seen in an epoch."""

    name: str
    pairs: int
    weight: float = 1.0


@dataclass(frozen=True)
class Ragged:
    """Sequences of different lengths in one array."""

    tokens: np.ndarray
    lengths: np.ndarray

    def split(self) -> list[np.ndarray]:
        return np.split(self.tokens, np.cumsum(self.lengths)[:-1]) if len(self.lengths) else []

    def choose(self, chosen: np.ndarray) -> "Ragged":
        """Only the sequences for which `chosen` is true."""
        if chosen.all():
            return self
        return Ragged(self.tokens[np.repeat(chosen, self.lengths)], self.lengths[chosen])


def as_ragged(sequences: Sequence[Sequence[int]]) -> Ragged:
    lengths = np.fromiter(map(len, sequences), dtype="<i8", count=len(sequences))
    return Ragged(
        np.fromiter(chain.from_iterable(sequences), dtype="<i8", count=int(lengths.sum())), lengths
    )


class TokenStore:
    """A published store, read through memory maps; opening it verifies every checksum."""

    def __init__(self, directory: Path, *, verify: bool = True) -> None:
        if verify:
            verify_directory(directory, kind=KIND)
        description = read_json(directory / DESCRIPTION)
        try:
            self.num_pairs = int(description["pairs"])
            self.total_tokens: dict[Side, int] = {
                side: int(description["tokens"][side]) for side in SIDES
            }
            self.max_length: dict[Side, int] = {
                side: int(description["longest"][side]) for side in SIDES
            }
            self.corpora = tuple(CorpusRange(**entry) for entry in description["corpora"])
            self.details: dict[str, Any] = description["details"]
            self._offsets = {
                s: np.memmap(directory / f"{s}.offsets", dtype="<i8", mode="r") for s in SIDES
            }
            self._tokens = {
                s: np.memmap(
                    directory / f"{s}.tokens", dtype=np.dtype(description["dtype"][s]), mode="r"
                )
                for s in SIDES
            }
            whole = all(
                len(self._offsets[s]) == self.num_pairs + 1
                and int(self._offsets[s][-1]) == len(self._tokens[s])
                for s in SIDES
            )
        except (KeyError, TypeError, ValueError, OSError) as error:
            raise _damaged(directory) from error
        if not whole:
            raise _damaged(directory)
        self.directory = directory
        self.fingerprint = manifest_digest(directory)

    def __len__(self) -> int:
        return self.num_pairs

    def source(self, index: int) -> np.ndarray:
        return self._sequence("source", index)

    def target(self, index: int) -> np.ndarray:
        return self._sequence("target", index)

    @property
    def source_lengths(self) -> np.ndarray:
        """All source lengths at once: 8 bytes a pair in memory."""
        return np.diff(self._offsets["source"])

    @property
    def target_lengths(self) -> np.ndarray:
        return np.diff(self._offsets["target"])

    def gather(self, pairs: np.ndarray, key: Sequence[int | str] = ()) -> tuple[Ragged, Ragged]:
        """Both sides of some pairs; `key` is for stores that sample, this one ignores it."""
        return self.gather_side("source", pairs), self.gather_side("target", pairs)

    def gather_side(self, side: Side, pairs: np.ndarray) -> Ragged:
        """One side of some pairs."""
        offsets = self._offsets[side]
        starts = np.asarray(offsets[pairs])
        lengths = np.asarray(offsets[pairs + 1]) - starts
        return Ragged(np.asarray(self._tokens[side][concatenated_ranges(starts, lengths)]), lengths)

    def _sequence(self, side: Side, index: int) -> np.ndarray:
        if not 0 <= index < self.num_pairs:
            raise IndexError(f"pair {index} of {self.num_pairs}")
        offsets = self._offsets[side]
        return np.asarray(self._tokens[side][offsets[index] : offsets[index + 1]])


def concatenated_ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """[starts[0], starts[0]+1, …, starts[1], …]: `lengths[i]` consecutive integers from each
    start.
    """
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def _damaged(directory: Path) -> CheckpointError:
    return CheckpointError(
        "is damaged (its parts do not fit together); prepare the data again",
        "已损坏（各部分不吻合）；请重新准备数据",
        file=directory / DESCRIPTION,
    )


class StoreWriter:
    """Writes a store block by block; a context manager that publishes the store on success."""

    def __init__(
        self, directory: Path, *, vocabulary_sizes: dict[Side, int], replace: bool = False
    ) -> None:
        self.directory, self.details = directory, dict[str, Any]()
        self._dtype = {
            side: "<u2" if vocabulary_sizes[side] <= 1 << 16 else "<u4" for side in SIDES
        }
        self._publishing = publish_directory(directory, kind=KIND, replace=replace)
        self._files: dict[str, BinaryIO] = {}
        self._end = dict.fromkeys(SIDES, 0)
        self._longest = dict.fromkeys(SIDES, 0)
        self._corpora: list[CorpusRange] = []
        self.num_pairs = 0

    def __enter__(self) -> Self:
        self._temporary = self._publishing.__enter__()
        for side in SIDES:
            for part in ("tokens", "offsets"):
                self._files[f"{side}.{part}"] = (self._temporary / f"{side}.{part}").open(
                    "wb", buffering=1 << 20
                )
            self._files[f"{side}.offsets"].write(np.zeros(1, "<i8").tobytes())
        return self

    def start_corpus(self, name: str, *, weight: float = 1.0) -> None:
        """Pairs added from now on belong to this corpus."""
        self._corpora.append(CorpusRange(name, 0, weight))

    def add(self, source: Ragged, target: Ragged) -> None:
        """Append pairs; both sides have the same number of sequences."""
        assert len(source.lengths) == len(target.lengths)
        assert self._corpora, "start a corpus first"
        for side, sequences in zip(SIDES, (source, target), strict=True):
            ends = self._end[side] + np.cumsum(sequences.lengths)
            self._files[f"{side}.tokens"].write(
                sequences.tokens.astype(self._dtype[side]).tobytes()
            )
            self._files[f"{side}.offsets"].write(ends.astype("<i8").tobytes())
            self._end[side] += len(sequences.tokens)
            self._longest[side] = max(self._longest[side], int(sequences.lengths.max(initial=0)))
        self.num_pairs += len(source.lengths)
        last = self._corpora[-1]
        self._corpora[-1] = CorpusRange(last.name, last.pairs + len(source.lengths), last.weight)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        for file in self._files.values():
            file.close()
        if error is None and (self.num_pairs == 0 or min(self._end.values()) == 0):
            error = DataError(
                "no pair is left to store; look at the report of the filter",
                "没有可存储的句对；请查看过滤报告",
                file=self.directory,
            )
            kind = type(error)
            self._publishing.__exit__(kind, error, None)
            raise error
        if error is None:
            description = {
                "pairs": self.num_pairs,
                "tokens": self._end,
                "longest": self._longest,
                "dtype": self._dtype,
                "corpora": [asdict(corpus) for corpus in self._corpora if corpus.pairs],
                "details": self.details,
            }
            write_json(self._temporary / DESCRIPTION, description)
        return self._publishing.__exit__(kind, error, trace)
