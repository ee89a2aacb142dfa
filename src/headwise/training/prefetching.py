"""Prepares the next batches in a thread while the present one is trained on.

The order is the same as without the thread. Each batch carries its cursor (its position in the
data), so that a checkpoint stores the position of the last batch that was *used*, not of the last
one that was prepared. For a GPU, batches wait in pinned memory, from which a copy runs beside the
computation.
"""

import dataclasses
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

import torch
from torch import Tensor

Cursor = Mapping[str, int]


class Batches(Protocol):
    """Training data as one endless, resumable stream.

    A batch is a tensor, or a frozen dataclass, tuple or dict of tensors. A cursor is a flat mapping
    of names to integers; its entry `epoch`, if present, is written to the log. `fingerprint`
    changes when the data or its order does. With several processes, each gets its own share of
    every global batch, and all see the same cursors.
    """

    @property
    def fingerprint(self) -> str: ...

    def stream(self, cursor: Cursor | None) -> Iterator[tuple[Any, Cursor]]:
        """Batches after the cursor (None: from the beginning), each with the cursor that follows
        it.
        """
        ...


class Prefetcher:
    """`take()` returns the next batch and cursor, or None at the end of the stream.

    Errors of the stream are raised there too.
    """

    def __init__(
        self, batches: Batches, cursor: Cursor | None, *, device: torch.device, depth: int = 4
    ) -> None:
        self._batches, self._cursor, self._device = batches, cursor, device
        self._queue: queue.Queue[tuple[Any, Cursor] | BaseException | None] = queue.Queue(
            maxsize=depth
        )
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._produce, name="headwise-prefetch", daemon=True)
        self._ended = False
        self._gpu = torch.cuda.current_device() if device.type == "cuda" else None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed.set()
        self._thread.join(timeout=10)

    def take(self) -> tuple[Any, Cursor] | None:
        if self._ended:
            return None
        item = self._queue.get()
        if item is None or isinstance(item, BaseException):
            self._ended = True
            if item is not None:
                raise item
            return None
        batch, cursor = item
        return map_tensors(batch, lambda tensor: tensor.to(self._device, non_blocking=True)), cursor

    def _produce(self) -> None:
        pin = self._device.type == "cuda"
        try:
            if pin:
                # A new thread uses the first GPU, which may belong to another process.
                torch.cuda.set_device(self._gpu)
            for batch, cursor in self._batches.stream(self._cursor):
                ready = map_tensors(batch, lambda tensor: tensor.pin_memory()) if pin else batch
                if not self._put((ready, cursor)):
                    return
            self._put(None)
        except BaseException as error:
            self._put(error)  # raised by the consumer

    def _put(self, item: tuple[Any, Cursor] | BaseException | None) -> bool:
        while not self._closed.is_set():
            try:
                self._queue.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False


def map_tensors(batch: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """The same structure with the function applied to every tensor in it."""
    if isinstance(batch, Tensor):
        return function(batch)
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        values = {
            field.name: map_tensors(getattr(batch, field.name), function)
            for field in dataclasses.fields(batch)
            if field.init
        }
        return dataclasses.replace(batch, **values)
    if isinstance(batch, Mapping):
        return {key: map_tensors(value, function) for key, value in batch.items()}
    if isinstance(batch, tuple | list):
        return type(batch)(map_tensors(value, function) for value in batch)
    return batch
