"""Makes the endless stream of training batches, and the batches of an evaluation.

Chunk c of epoch e is a pure function of (seed, e, c): its pairs come from `order.py`, are packed
into rows, and the rows are shuffled. The rows of all chunks of all epochs form one stream, and a
batch is the next `rows` of it. A cursor of three integers is a position in the stream, so that a
run resumes exactly.

The stream does not depend on the number of processes. An update uses the rows of `accumulation`
batches. N processes take consecutive equal shares of these rows; a share larger than a batch is cut
into batches again:

    accumulation 1, 2 processes    | process 0 | process 1 |    half a batch each
    accumulation 4, 2 processes    | batch 0 | batch 1 | batch 2 | batch 3 |    two batches each

Tested against: each pair once an epoch; resumed = uninterrupted from every cursor; the shares of N
processes together = one process.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from headwise.data.order import CHUNK_PAIRS, EpochOrder
from headwise.data.packing import PackedBatch, RowTable, build_rows, empty_rows, join_tables
from headwise.data.shards import CorpusRange, Ragged
from headwise.errors import CheckpointError, UsageError
from headwise.randomness import numpy_generator

MAX_IMBALANCE = 0.01
ROW_MULTIPLES = (8, 4, 2)


class PairSource(Protocol):
    """What the stream needs of a store: its corpora, and the tokens of some pairs.

    The key seeds stores that sample.
    """

    @property
    def corpora(self) -> Sequence[CorpusRange]: ...

    def __len__(self) -> int: ...

    def gather(self, pairs: np.ndarray, key: Sequence[int | str] = ()) -> tuple[Ragged, Ragged]: ...


@dataclass(frozen=True)
class Cursor:
    """A position in the stream: the next row to be read."""

    epoch: int = 0
    chunk: int = 0
    row: int = 0

    def to_json(self) -> dict[str, int]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "Cursor":
        if set(data) != {"epoch", "chunk", "row"} or not all(
            type(v) is int and v >= 0 for v in data.values()
        ):
            raise CheckpointError(
                f"{dict(data)!r} is not a position in the data; epoch, chunk and row are needed, "
                "each 0 or more: use an earlier checkpoint",
                f"{dict(data)!r} 不是数据中的位置；需要不小于 0 的 epoch、chunk、row："
                "请用更早的检查点",
            )
        return Cursor(**data)


@dataclass(frozen=True)
class Share:
    """Which rows of an update one process takes, out of those of `accumulation` batches."""

    process: int = 0
    num_processes: int = 1
    accumulation: int = 1

    @property
    def num_batches(self) -> int:
        """Batches of this process in an update: as few as possible, none larger than `rows`."""
        return -(-self.accumulation // self.num_processes)

    def cuts(self, rows: int) -> list[int]:
        """Where the batches of this process begin and end among the rows of the update."""
        total = self.accumulation * rows
        first, last = (
            total * process // self.num_processes for process in (self.process, self.process + 1)
        )
        return [
            first + (last - first) * number // self.num_batches
            for number in range(self.num_batches + 1)
        ]

    def check(self, rows: int, row_tokens: int) -> None:
        """Refuse more processes than there are rows in the update: a batch is `rows` of so many
        tokens.
        """
        total = rows * self.accumulation
        if not 0 <= self.process < self.num_processes or not self.num_processes <= total:
            needed = -(-self.num_processes // self.accumulation) * row_tokens
            raise UsageError(
                f"{total} {'row' if total == 1 else 'rows'} cannot be shared by "
                f"{self.num_processes} processes; each needs at least one: raise "
                f"training.batch_tokens to {needed} or more, or start fewer processes",
                f"{total} 行无法由 {self.num_processes} 个进程分担；每个进程至少需要一行：请将 "
                f"training.batch_tokens 增大到至少 {needed}，或减少进程数",
            )


ALL_ROWS = Share()


def plan_rows(
    source_tokens: int,
    target_tokens: int,
    row_tokens: int,
    *,
    multiples: Sequence[int] = ROW_MULTIPLES,
) -> tuple[int, int]:
    """Target rows of `row_tokens`, source rows in proportion to the corpus.

    The source row is the nearest multiple of 8 if both sides then fill up within 1 %, else of 4,
    else of 2. At 128 tokens a multiple of 8 is a step of 6 %; a row that deviates from the
    proportion has padding on one side of every batch.
    """
    exact = row_tokens * source_tokens / target_tokens
    source_row = row_tokens
    for multiple in multiples:
        source_row = max(multiple, round(exact / multiple) * multiple)
        if abs(source_row / exact - 1) <= MAX_IMBALANCE:
            break
    return source_row, row_tokens


def batches(
    store: PairSource,
    *,
    seed: int,
    rows: int,
    source_row: int,
    target_row: int,
    cursor: Cursor | None = None,
    share: Share = ALL_ROWS,
) -> Iterator[tuple[PackedBatch, Cursor]]:
    """Batches without end, each with a cursor.

    The cursor of the last batch of an update points behind the whole update. `rows` are those of a
    batch of the recipe, which several processes share.
    """
    share.check(rows, target_row)
    chunks = _Chunks(store, EpochOrder(store.corpora, seed), source_row, target_row)
    return _stream(_Reader(chunks, cursor or Cursor()), rows, share)


def _stream(reader: "_Reader", rows: int, share: Share) -> Iterator[tuple[PackedBatch, Cursor]]:
    cuts = share.cuts(rows)
    while True:
        reader.read(cuts[0])
        tables = [reader.read(end - begin) for begin, end in pairwise(cuts)]
        reader.read(share.accumulation * rows - cuts[-1])
        for table in tables:
            yield table.batch(), reader.place


class _Reader:
    """Reads the stream row by row, from chunk to chunk and epoch to epoch."""

    def __init__(self, chunks: "_Chunks", place: Cursor) -> None:
        self.place = place
        self._chunks, self._table = chunks, chunks.table(place)

    def read(self, rows: int) -> RowTable:
        parts: list[RowTable] = [self._table.slice(0, 0)]
        while rows:
            while self.place.row >= len(self._table):
                self.place = self._chunks.after(self.place)
                self._table = self._chunks.table(self.place)
            part = self._table.slice(self.place.row, self.place.row + rows)
            parts.append(part)
            rows -= len(part)
            self.place = Cursor(self.place.epoch, self.place.chunk, self.place.row + len(part))
        return join_tables(parts[1:] or parts)


@dataclass(frozen=True)
class _Chunks:
    store: PairSource
    order: EpochOrder
    source_row: int
    target_row: int

    def table(self, place: Cursor) -> RowTable:
        if place.chunk >= self.order.num_chunks:
            raise CheckpointError(
                f"chunk {place.chunk} of epoch {place.epoch} is asked for, but the data has "
                f"{self.order.num_chunks}; the data is not the one the run began with",
                f"请求第 {place.epoch} 轮的第 {place.chunk} 块，但数据只有 "
                f"{self.order.num_chunks} 块；数据与训练开始时不同",
            )
        pairs = self.order.chunk(place.epoch, place.chunk)
        key = (self.order.seed, "rows", place.epoch, place.chunk)
        source, target = self.store.gather(pairs, key)
        check_fit(source, target, source_row=self.source_row, target_row=self.target_row)
        return build_rows(
            source,
            target,
            source_row=self.source_row,
            target_row=self.target_row,
            shuffle=numpy_generator(*key),
        )

    def after(self, place: Cursor) -> Cursor:
        last = place.chunk + 1 == self.order.num_chunks
        return Cursor(place.epoch + 1, 0, 0) if last else Cursor(place.epoch, place.chunk + 1, 0)


def check_fit(source: Ragged, target: Ragged, *, source_row: int, target_row: int) -> None:
    """Raise for a pair longer than a row, before it is packed."""
    for name, side, room in (("source", source, source_row), ("target", target, target_row)):
        longest = int(side.lengths.max(initial=0)) + 1
        if longest > room:
            raise UsageError(
                f"a {name} sentence has {longest} tokens with its end, a row holds {room}; "
                "raise data.row_tokens or filter with data.filter.max_tokens",
                f"有 {name} 句子连同结束符共 {longest} 个词元，一行只能放 {room} 个；"
                "请增大 data.row_tokens，或用 data.filter.max_tokens 过滤",
            )


def evaluation_batches(
    store: PairSource,
    *,
    rows: int,
    source_row: int,
    target_row: int,
    process: int = 0,
    num_processes: int = 1,
) -> Iterator[PackedBatch]:
    """Every pair exactly once, in stored order chunk by chunk; rows of padding complete the last
    batch.

    Several processes take turns by batch.
    """
    waiting: list[RowTable] = []
    number = 0
    for begin in range(0, len(store), CHUNK_PAIRS):
        source, target = store.gather(np.arange(begin, min(begin + CHUNK_PAIRS, len(store))))
        check_fit(source, target, source_row=source_row, target_row=target_row)
        waiting.append(build_rows(source, target, source_row=source_row, target_row=target_row))
        joined = join_tables(waiting)
        whole = len(joined) - len(joined) % rows
        for first in range(0, whole, rows):
            if number % num_processes == process:
                yield joined.slice(first, first + rows).batch()
            number += 1
        waiting = [joined.slice(whole, len(joined))]
    rest = (
        join_tables(waiting)
        if waiting
        else empty_rows(0, source_row=source_row, target_row=target_row)
    )
    if len(rest) and number % num_processes == process:
        padding = empty_rows(rows - len(rest), source_row=source_row, target_row=target_row)
        yield join_tables([rest, padding]).batch()
