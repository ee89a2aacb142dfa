"""Run a coroutine in a thread of its own: a browser driven by this process keeps its event loop in
the main thread.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def run_alone(scene: Coroutine[Any, Any, Any]) -> Any:
    return call_alone(lambda: asyncio.run(scene))


def call_alone(function: Callable[[], Any]) -> Any:
    """The same for a function that starts an event loop itself."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(function).result()
