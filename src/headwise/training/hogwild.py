"""Hogwild: several threads train the same embedding tables without locks, each from other pieces of
the text.

A piece of text touches few rows of a large table, so two threads seldom write to the same row. When
they do, the lost update is noise of the kind that stochastic gradients have anyway (Niu, Recht, Ré
& Wright 2011). A thread that has finished a piece takes the next one. With one thread, pieces are
processed in order in the caller's thread, and every bit of the result repeats.

Tested against: one thread = the plain loop; with several, every piece exactly once, and an error in
a thread reaches the caller.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator

import torch


class _Pieces:
    """The pieces that are left, how much was read so far, and errors, shared by all threads."""

    def __init__(self, num_pieces: int, total: int) -> None:
        self._left, self._total = iter(range(num_pieces)), total
        self.done, self.failures = 0, list[BaseException]()
        self.changed = threading.Condition()

    def learn_all(
        self, learn: Callable[[int, float], int], watch: Callable[[int], None] | None = None
    ) -> None:
        """Take pieces until none is left or a thread has failed."""
        with torch.inference_mode():
            while (taken := self._take()) is not None:
                size = learn(*taken)
                with self.changed:
                    # Do not notify the waiting thread here: it would take a core and the
                    # interpreter lock.
                    self.done += size
                if watch is not None:
                    watch(self.done)

    def learn_in_thread(self, learn: Callable[[int, float], int]) -> None:
        """The same in a thread of its own: an error is kept for the caller."""
        try:
            self.learn_all(learn)
        except BaseException as error:
            self.failures.append(error)
        finally:
            with self.changed:
                self.changed.notify_all()

    def _take(self) -> tuple[int, float] | None:
        """The next piece, and the share of the text that was read before it."""
        with self.changed:
            piece = None if self.failures else next(self._left, None)
            return None if piece is None else (piece, self.done / self._total)


def learn_pieces(
    learn: Callable[[int, float], int],
    num_pieces: int,
    *,
    total: int,
    threads: int,
    watch: Callable[[int], None],
) -> None:
    """Call `learn(piece, progress)` for every piece; it returns how much it read.

    `watch` is called with the sum, in this thread.
    """
    pieces = _Pieces(num_pieces, total)
    with _one_thread_each():
        if threads == 1:
            pieces.learn_all(learn, watch)
            return
        crew = [
            threading.Thread(target=pieces.learn_in_thread, args=(learn,), daemon=True)
            for _ in range(threads)
        ]
        for one in crew:
            one.start()
        try:
            while any(one.is_alive() for one in crew):
                with pieces.changed:
                    pieces.changed.wait(timeout=0.2)
                watch(pieces.done)
        except BaseException as error:  # an interrupted caller: threads stop after their pieces
            pieces.failures.append(error)
            raise
        finally:
            for one in crew:
                one.join()
    if pieces.failures:
        raise pieces.failures[0]
    watch(pieces.done)


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """Limit matrix products to one thread each: the pieces already run in parallel."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
