"""A coroutine in a thread of its own: a browser driven from the same process keeps its event loop in the main one."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def run_alone(scene: Coroutine[Any, Any, Any]) -> Any:
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, scene).result()
