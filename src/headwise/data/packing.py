"""Builds packed rows as arrays, and batches of them: the input of a training step.

A row holds several whole sentence pairs. Segment 0 is padding; segments 1, 2, … are the pairs of
the row, with the same number on both sides. Positions restart at 0 in each segment. A pair (x, y)
is stored as

    source         x₁ … xₙ </s>
    target_input   <s> y₁ … yₘ
    target_output  y₁ … yₘ </s>

Thousands of rows are built at once by array operations; a batch is a slice. `row_assignment.py`
decides which pairs share a row. Tested against: unpacking a batch gives the pairs back.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from headwise.data.row_assignment import pack_rows
from headwise.data.shards import Ragged, concatenated_ranges
from headwise.text.tokenizer import BOS, EOS, PAD


@dataclass(frozen=True)
class PackedBatch:
    """Rows of packed pairs with static shapes; padding has segment 0 and token 0."""

    source: Int[Tensor, "row source"]
    source_segment: Int[Tensor, "row source"]
    source_position: Int[Tensor, "row source"]
    target_input: Int[Tensor, "row target"]
    target_output: Int[Tensor, "row target"]
    target_segment: Int[Tensor, "row target"]
    target_position: Int[Tensor, "row target"]

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> "PackedBatch":
        return replace(
            self,
            **{
                f.name: getattr(self, f.name).to(device, non_blocking=non_blocking)
                for f in fields(self)
            },
        )

    def pin_memory(self) -> "PackedBatch":
        return replace(self, **{f.name: getattr(self, f.name).pin_memory() for f in fields(self)})

    @property
    def num_rows(self) -> int:
        return self.source.shape[0]

    @property
    def num_target_tokens(self) -> int:
        """Tokens that count in the loss, with the ends of sentences."""
        return int((self.target_segment > 0).sum())

    @property
    def num_source_tokens(self) -> int:
        return int((self.source_segment > 0).sum())

    @property
    def num_pairs(self) -> int:
        return int(self.target_segment.amax(dim=1).sum()) if self.num_rows else 0


NAMES = tuple(field.name for field in fields(PackedBatch))


@dataclass(frozen=True)
class RowTable:
    """Many rows as numpy arrays: a [row, length] array per field of a batch, and the pairs of each
    row.
    """

    arrays: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.arrays["source"])

    def slice(self, begin: int, end: int) -> "RowTable":
        return RowTable({name: array[begin:end] for name, array in self.arrays.items()})

    def batch(self) -> PackedBatch:
        return PackedBatch(
            **{name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in self.arrays.items()}
        )


def join_tables(tables: list[RowTable]) -> RowTable:
    if len(tables) == 1:
        return tables[0]
    return RowTable(
        {name: np.concatenate([table.arrays[name] for table in tables]) for name in NAMES}
    )


def empty_rows(count: int, *, source_row: int, target_row: int) -> RowTable:
    """Rows of padding, which complete the last batch of an evaluation."""
    widths = {name: source_row if name.startswith("source") else target_row for name in NAMES}
    return RowTable(
        {name: np.zeros((count, width), dtype=np.int64) for name, width in widths.items()}
    )


def build_rows(
    source: Ragged,
    target: Ragged,
    *,
    source_row: int,
    target_row: int,
    shuffle: np.random.Generator | None = None,
) -> RowTable:
    """Pack pairs into rows (shuffled if a generator is given) and fill in all their tokens."""
    row = pack_rows(
        source.lengths + 1, target.lengths + 1, source_row=source_row, target_row=target_row
    )
    num_rows = int(row.max()) + 1 if len(row) else 0
    if shuffle is not None:
        row = shuffle.permutation(num_rows)[row]
    order = np.argsort(row, kind="stable")
    row = row[order]
    first = (
        np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]]))
        if len(row)
        else np.zeros(0, dtype=np.int64)
    )
    segment = np.arange(len(row)) - np.repeat(first, np.diff(np.append(first, len(row)))) + 1
    table = empty_rows(num_rows, source_row=source_row, target_row=target_row)
    _lay_out(source, order, row, segment, table.arrays, "source")
    _lay_out(target, order, row, segment, table.arrays, "target")
    return table


def _lay_out(
    side: Ragged,
    order: np.ndarray,
    row: np.ndarray,
    segment: np.ndarray,
    arrays: dict[str, np.ndarray],
    name: str,
) -> None:
    """Write the tokens, segments and positions of one side; pairs are sorted by row."""
    width = arrays[f"{name}_segment"].shape[1]
    lengths = side.lengths[order]
    starts = (np.cumsum(side.lengths) - side.lengths)[order]
    tokens = side.tokens[concatenated_ranges(starts, lengths)]
    room = lengths + 1  # with the end, or the beginning
    before = np.cumsum(room) - room
    first_of_row = np.concatenate([[True], row[1:] != row[:-1]])
    row_begin = np.maximum.accumulate(np.where(first_of_row, before, 0))
    place = row * width + before - row_begin
    cells = concatenated_ranges(place, room)
    arrays[f"{name}_segment"].ravel()[cells] = np.repeat(segment, room)
    arrays[f"{name}_position"].ravel()[cells] = np.arange(int(room.sum())) - np.repeat(before, room)
    words = concatenated_ranges(place, lengths)
    if name == "source":
        arrays["source"].ravel()[words] = tokens
        arrays["source"].ravel()[place + lengths] = EOS
        return
    arrays["target_output"].ravel()[words] = tokens
    arrays["target_output"].ravel()[place + lengths] = EOS
    arrays["target_input"].ravel()[words + 1] = tokens
    arrays["target_input"].ravel()[place] = BOS


def unpack_pairs(batch: PackedBatch) -> list[tuple[list[int], list[int]]]:
    """The pairs of a batch, row by row, without <s> and </s>: for tests and for people."""
    assert PAD == 0
    pairs = []
    for row in range(batch.num_rows):
        for number in range(1, int(batch.target_segment[row].max()) + 1):
            source = batch.source[row][batch.source_segment[row] == number].tolist()
            target = batch.target_output[row][batch.target_segment[row] == number].tolist()
            pairs.append((source[:-1], target[:-1]))
    return pairs
