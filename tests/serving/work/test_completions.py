"""Completions reported by other threads: all of them, in order, a few a turn."""

import asyncio
import threading

from headwise.serving.work.completions import PER_TURN, Completions, complete
from tests.serving.event_loops import run_alone


def test_all_are_settled_in_order_and_few_in_one_turn() -> None:
    async def scene() -> None:
        loop = asyncio.get_running_loop()
        completions, settled = Completions(loop), []
        futures = [loop.create_future() for _ in range(5 * PER_TURN + 3)]
        for number, future in enumerate(futures):
            future.add_done_callback(lambda _, number=number: settled.append(number))
        thread = threading.Thread(target=lambda: [completions.notify(future) for future in futures])
        thread.start()
        thread.join()
        before = 0
        while len(settled) < len(futures):
            await asyncio.sleep(0)
            assert len(settled) - before <= PER_TURN
            before = len(settled)
        assert settled == list(range(len(futures)))

    run_alone(scene())


def test_posts_of_many_threads_are_not_lost() -> None:
    async def scene() -> None:
        loop = asyncio.get_running_loop()
        completions = Completions(loop)
        futures = [loop.create_future() for _ in range(4 * 500)]

        def notify(first: int) -> None:
            for future in futures[first::4]:
                completions.notify(future)

        for first in range(4):
            threading.Thread(target=notify, args=(first,)).start()
        await asyncio.wait_for(asyncio.gather(*futures), 60)

    run_alone(scene())


def test_what_ended_otherwise_is_left_alone_and_a_closed_loop_is_no_error() -> None:
    async def scene() -> None:
        future = asyncio.get_running_loop().create_future()
        complete(future)
        complete(future)
        assert future.result() is None

    run_alone(scene())
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    loop.close()
    Completions(loop).notify(future)
    assert not future.done()
