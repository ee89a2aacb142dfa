"""Counts requests, and stalls of the event loop. `api/metrics.py` writes the counters as text.

Labels are routes and statuses that the server defines, so a client cannot create new ones.
"""

import asyncio
import time
from collections import Counter

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the histogram of response times."""
STALL_PERIOD = 0.02


class Metrics:
    """Counts since the start of the server."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        """By route and status."""
        self.seconds: dict[str, float] = {}
        self.buckets: dict[str, list[int]] = {}
        self.longest_stall = 0.0
        """Since the metrics were last read."""

    def count(self, route: str, status: int, seconds: float) -> None:
        self.requests[route, status] += 1
        self.seconds[route] = self.seconds.get(route, 0.0) + seconds
        buckets = self.buckets.setdefault(route, [0] * (len(SECONDS) + 1))
        for number, bound in enumerate((*SECONDS, float("inf"))):
            buckets[number] += seconds <= bound

    async def watch_loop(self) -> None:
        """Measure how much later than asked the event loop wakes up."""
        while True:
            asked = time.monotonic() + STALL_PERIOD
            await asyncio.sleep(STALL_PERIOD)
            self.longest_stall = max(self.longest_stall, time.monotonic() - asked)
