"""Turns the rows of each epoch into one endless stream of batches that can be resumed and shared.

The rows of an epoch are a function of the epoch's number. A cursor {epoch, row} is a position in
the stream, and an update takes the next rows of it. N processes take consecutive equal shares of
these rows (`Share` in batching.py), so that together they see what one process would see.

Tested against: resumed = uninterrupted from every cursor; the shares together = one process
(tests/data/labels/test_labelled_rows.py).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import TypeVar

from headwise.data.batching import Share
from headwise.errors import CheckpointError

Row = TypeVar("Row")
Batch = TypeVar("Batch")


def endless_rows(
    cursor: Mapping[str, int] | None, rows_of: Callable[[int], Sequence[Row]]
) -> Iterator[tuple[Row, Mapping[str, int]]]:
    """The rows of all epochs, each with the cursor that follows it."""
    epoch, first = _read_cursor(cursor)
    while True:
        rows = rows_of(epoch)
        for number in range(first, len(rows)):
            at_end = number + 1 == len(rows)
            yield rows[number], {"epoch": epoch + at_end, "row": 0 if at_end else number + 1}
        epoch, first = epoch + 1, 0


def batch_rows(
    places: Iterator[tuple[Row, Mapping[str, int]]],
    rows: int,
    share: Share,
    fill: Callable[[Sequence[Row]], Batch],
) -> Iterator[tuple[Batch, Mapping[str, int]]]:
    """The batches of this process in every update, each with the cursor that follows the update.

    Every process has a row of each update (`Share.check`).
    """
    cuts = share.cuts(rows)
    while True:
        update = list(islice(places, rows * share.accumulation))
        after = update[-1][1]
        for first, last in pairwise(cuts):
            yield fill([row for row, _ in update[first:last]]), after


def _read_cursor(cursor: Mapping[str, int] | None) -> tuple[int, int]:
    if cursor is None:
        return 0, 0
    if set(cursor) != {"epoch", "row"} or not all(
        type(value) is int and value >= 0 for value in cursor.values()
    ):
        raise CheckpointError(
            f"{dict(cursor)!r} is not a position in the data; epoch and row are needed, each 0 or "
            "more: use an earlier checkpoint",
            f"{dict(cursor)!r} 不是数据中的位置；需要不小于 0 的 epoch、row：请用更早的检查点",
        )
    return cursor["epoch"], cursor["row"]
