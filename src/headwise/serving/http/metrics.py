"""What happened, in the text form that Prometheus reads: counts, times, queues, memory, and stalls
of the event loop.

Written by hand: the format is a name, labels and a number a line, and a library for it would bring
its own global registry. Labels are routes and statuses the server itself defines, so no client can
make new ones. Tested: the format, line by line.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwise.serving.server import Server

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
STALL_PERIOD = 0.02


class Metrics:
    """Counts since the start."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds: dict[str, float] = {}
        self.buckets: dict[str, list[int]] = {}
        self.longest_stall = 0.0
        """Since it was last read."""

    def count(self, route: str, status: int, seconds: float) -> None:
        self.requests[route, status] += 1
        self.seconds[route] = self.seconds.get(route, 0.0) + seconds
        buckets = self.buckets.setdefault(route, [0] * (len(SECONDS) + 1))
        for number, bound in enumerate((*SECONDS, float("inf"))):
            buckets[number] += seconds <= bound

    async def watch_loop(self) -> None:
        """How much later than asked the event loop wakes up: what a client waits for nothing."""
        while True:
            asked = time.monotonic() + STALL_PERIOD
            await asyncio.sleep(STALL_PERIOD)
            self.longest_stall = max(self.longest_stall, time.monotonic() - asked)

    def write(self, server: "Server") -> str:
        """One page of metrics."""
        stall, self.longest_stall = self.longest_stall, 0.0
        workers = [(name or "server", worker) for name, worker in server.workers.items()]
        lines = [
            *_family("headwise_requests_total", "counter", "Requests answered.", self._counts()),
            *self._histogram(),
            *_family(
                "headwise_accepted",
                "gauge",
                "Requests being answered.",
                [({}, server.num_accepted)],
            ),
            *_family(
                "headwise_queue_sentences",
                "gauge",
                "Sentences waiting.",
                [({"model": n}, w.num_waiting) for n, w in workers],
            ),
            *_family(
                "headwise_queue_seconds",
                "gauge",
                "Seconds until what is accepted is done, as the last answers tell.",
                [({"model": n}, w.seconds) for n, w in workers],
            ),
            *_family(
                "headwise_batches_total",
                "counter",
                "Batches computed.",
                [({"model": n}, w.num_batches) for n, w in workers],
            ),
            *_family(
                "headwise_batched_sentences_total",
                "counter",
                "Sentences computed in them.",
                [({"model": n}, w.num_parts) for n, w in workers],
            ),
            *_family(
                "headwise_worker_restarts_total",
                "counter",
                "Times a worker was killed and began again.",
                [({"model": n}, w.num_restarts) for n, w in workers],
            ),
            *_family(
                "headwise_event_loop_stall_seconds",
                "gauge",
                "Longest stall since this page was last read.",
                [({}, stall)],
            ),
            *_family(
                "headwise_ready",
                "gauge",
                "1 if requests are welcome.",
                [({}, int(server.is_ready))],
            ),
            *_family(
                "process_resident_memory_bytes", "gauge", "Memory.", [({}, server.resident_bytes)]
            ),
        ]
        return "\n".join(lines) + "\n"

    def _counts(self) -> list[tuple[Mapping[str, str], float]]:
        return [
            ({"route": route, "status": str(status)}, count)
            for (route, status), count in sorted(self.requests.items())
        ]

    def _histogram(self) -> Iterator[str]:
        name = "headwise_request_seconds"
        yield from _heading(name, "histogram", "Seconds from a request to its answer.")
        for route, buckets in sorted(self.buckets.items()):
            for bound, count in zip((*map(str, SECONDS), "+Inf"), buckets, strict=True):
                yield _line(f"{name}_bucket", {"route": route, "le": bound}, count)
            yield _line(f"{name}_sum", {"route": route}, self.seconds[route])
            yield _line(f"{name}_count", {"route": route}, buckets[-1])


def _family(
    name: str, kind: str, words: str, values: list[tuple[Mapping[str, str], float]]
) -> Iterator[str]:
    yield from _heading(name, kind, words)
    for labels, value in values:
        yield _line(name, labels, value)


def _heading(name: str, kind: str, words: str) -> Iterator[str]:
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    inside = ",".join(f'{key}="{text}"' for key, text in labels.items())
    shown = str(value) if isinstance(value, int) else f"{value:.6g}"
    return f"{name}{{{inside}}} {shown}" if inside else f"{name} {shown}"


def resident_bytes(statm: Path = Path("/proc/self/statm")) -> int:
    """Memory of this process; 0 where the system does not say."""
    try:
        return int(statm.read_text(encoding="ascii").split()[1]) * 4096
    except OSError:
        return 0
