"""Hogwild: several threads train the same embedding tables from different parts of a text,
lock-free.

A part touches few rows of a large table, so two threads seldom write to the same row. When they do,
the lost update is noise of the kind that stochastic gradients have anyway (Niu, Recht, Ré & Wright
2011). Each thread takes the next part when it has finished its last. With one thread, parts are
processed in order in the caller's thread, and every bit of the result repeats.

Tested against: one thread = the plain loop; with several, every part exactly once, and an error in
a thread reaches the caller.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator

import torch


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
    pieces = iter(range(num_pieces))
    state, failures, done = threading.Condition(), list[BaseException](), 0

    def work() -> None:
        nonlocal done
        with torch.inference_mode():
            while True:
                with state:
                    piece = None if failures else next(pieces, None)
                    progress = done / total
                if piece is None:
                    return
                size = learn(piece, progress)
                with state:
                    # Do not notify the waiting thread here: it would take a core and the
                    # interpreter lock.
                    done += size
                if threads == 1:
                    watch(done)

    def work_guarded() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)
        finally:
            with state:
                state.notify_all()

    with _one_thread_each():
        if threads == 1:
            work()
            return
        crew = [threading.Thread(target=work_guarded, daemon=True) for _ in range(threads)]
        for one in crew:
            one.start()
        try:
            while any(one.is_alive() for one in crew):
                with state:
                    state.wait(timeout=0.2)
                watch(done)
        except (
            BaseException
        ) as error:  # the caller was interrupted: threads stop after their pieces
            failures.append(error)
            raise
        finally:
            for one in crew:
                one.join()
    if failures:
        raise failures[0]
    watch(done)


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """Limit matrix products to one thread each: the pieces already run in parallel."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
