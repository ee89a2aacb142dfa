"""Hogwild: several threads learn from different pieces of a text into the same tables, without
locks.

When a piece touches few rows of a large table, two threads seldom meet on one; what is lost when
they do is noise of the kind stochastic gradients have anyway (Niu, Recht, Ré & Wright 2011). Each
thread takes the next piece when it is done with its last. One thread works in the caller's own, in
order: then every bit of the result repeats.

Tested against: one thread = the plain loop; with several, every piece exactly once, and a failure
reaches the caller.
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
    """Call `learn(piece, progress)` for every piece; it returns how much it read. `watch` hears the
    sum, in this thread.
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
                    done += size  # who waits is not woken for it: it would want a core, and the interpreter
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
        ) as error:  # the caller was interrupted: the crew stops after its pieces
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
    """A product inside a thread is computed by that thread: the pieces are the parallelism."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
