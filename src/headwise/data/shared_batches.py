"""Divides batches among the processes of a training, for streams that do not know of processes.

With N processes:

    accumulation 1       each process takes its share of the rows of every batch
    accumulation k · N   each process takes every N-th batch of an update

Together the processes see exactly the batches that one process would see, so the sum of their
gradients is the gradient of one. Rows that carry a state from batch to batch (`carried`) stay with
one process, so such batches are always divided by rows. A process for which a batch has no row gets
one without targets, so a batch may have fewer rows than there are processes.
Tested against: the shares put together are the batch; resumed = uninterrupted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import torch

from headwise.data.batching import Share
from headwise.data.text.text_batches import TextBatch
from headwise.errors import UsageError
from headwise.text.tokenizer import PAD


class TextBatches(Protocol):
    """A stream of batches of text, from the beginning or after a cursor."""

    @property
    def fingerprint(self) -> str: ...

    def stream(
        self, cursor: Mapping[str, int] | None
    ) -> Iterator[tuple[TextBatch, Mapping[str, int]]]: ...


@dataclass(frozen=True)
class SharedBatches:
    """What one process takes of a stream."""

    batches: TextBatches
    share: Share
    carried: bool = False

    def __post_init__(self) -> None:
        check_accumulation(self.share, carried=self.carried)

    @property
    def fingerprint(self) -> str:
        return self.batches.fingerprint

    def stream(
        self, cursor: Mapping[str, int] | None
    ) -> Iterator[tuple[TextBatch, Mapping[str, int]]]:
        stream, share = self.batches.stream(cursor), self.share
        if share.num_processes == 1:
            yield from stream
        elif share.accumulation == 1:
            for batch, after in stream:
                yield cut_rows(batch, share), after
        else:
            while True:
                update = list(islice(stream, share.accumulation))
                for batch, _ in update[share.process :: share.num_processes]:
                    yield batch, update[-1][1]


def check_accumulation(share: Share, *, carried: bool) -> None:
    """Refuse a number of batches that the processes cannot share evenly."""
    processes, accumulation = share.num_processes, share.accumulation
    if processes == 1 or accumulation == 1:
        return
    if carried or accumulation % processes:
        allowed = "1" if carried else f"1 or a multiple of {processes}"
        raise UsageError(
            f"training.accumulation={accumulation} batches cannot be shared by {processes} "
            f"processes; set training.accumulation={allowed}",
            f"{processes} 个进程无法均分 training.accumulation={accumulation} 个批次；"
            f"请设 training.accumulation={'1' if carried else f'1 或 {processes} 的倍数'}",
        )


def rows_of_share(rows: int, share: Share) -> tuple[int, int]:
    """The first row that a process takes of a batch, and the one after its last."""
    first, last = (
        rows * number // share.num_processes for number in (share.process, share.process + 1)
    )
    return first, last


def cut_rows(batch: TextBatch, share: Share) -> TextBatch:
    """The rows of one process; if there are too few, a row without targets."""
    first, last = rows_of_share(len(batch.tokens), share)
    if first == last:
        return TextBatch(batch.tokens[:1], torch.full_like(batch.targets[:1], PAD), batch.fresh[:1])
    return TextBatch(batch.tokens[first:last], batch.targets[first:last], batch.fresh[first:last])
