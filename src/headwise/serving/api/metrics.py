"""`GET /metrics`: the state of the server in the text format of Prometheus.

The code writes the text itself, because the format is simple (a name, labels and a number on each
line) and the usual client library needs a global registry. Tested: the format, line by line.
"""

from collections.abc import Iterator, Mapping, Sequence

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from headwise.serving.http.metrics import SECONDS, Metrics
from headwise.serving.server import Server
from headwise.serving.state import State

Values = Sequence[tuple[Mapping[str, str], float]]
"""Labels and value of each line of a family."""

router = APIRouter(tags=["health"])


@router.get("/metrics", response_class=PlainTextResponse)
async def write_metrics(state: State) -> PlainTextResponse:
    """Counts, times, queues, memory."""
    text = "\n".join(_lines(state.server)) + "\n"
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def _lines(server: Server) -> Iterator[str]:
    metrics = server.metrics
    stall, metrics.longest_stall = metrics.longest_stall, 0.0
    yield from _family(
        "headwise_requests_total",
        "counter",
        "Requests answered.",
        [
            ({"route": route, "status": str(status)}, count)
            for (route, status), count in sorted(metrics.requests.items())
        ],
    )
    yield from _histogram(metrics)
    yield from _gauge("headwise_accepted", "Requests being answered.", server.num_accepted)
    yield from _worker_families(server)
    yield from _gauge(
        "headwise_event_loop_stall_seconds", "Longest stall since this page was last read.", stall
    )
    yield from _gauge("headwise_ready", "1 if requests are accepted.", int(server.is_ready))
    yield from _gauge("process_resident_memory_bytes", "Memory.", server.resident_bytes)


def _worker_families(server: Server) -> Iterator[str]:
    workers = [({"model": name or "server"}, worker) for name, worker in server.workers.items()]
    yield from _family(
        "headwise_queue_sentences",
        "gauge",
        "Sentences waiting.",
        [(labels, worker.num_waiting) for labels, worker in workers],
    )
    yield from _family(
        "headwise_queue_seconds",
        "gauge",
        "Seconds until all accepted work is done, estimated from recent answers.",
        [(labels, worker.seconds) for labels, worker in workers],
    )
    yield from _family(
        "headwise_batches_total",
        "counter",
        "Batches computed.",
        [(labels, worker.num_batches) for labels, worker in workers],
    )
    yield from _family(
        "headwise_batched_sentences_total",
        "counter",
        "Sentences computed in them.",
        [(labels, worker.num_parts) for labels, worker in workers],
    )
    yield from _family(
        "headwise_worker_restarts_total",
        "counter",
        "Times a worker was killed and restarted.",
        [(labels, worker.num_restarts) for labels, worker in workers],
    )


def _histogram(metrics: Metrics) -> Iterator[str]:
    name = "headwise_request_seconds"
    yield from _heading(name, "histogram", "Seconds from a request to its answer.")
    for route, buckets in sorted(metrics.buckets.items()):
        for bound, count in zip((*map(str, SECONDS), "+Inf"), buckets, strict=True):
            yield _line(f"{name}_bucket", {"route": route, "le": bound}, count)
        yield _line(f"{name}_sum", {"route": route}, metrics.seconds[route])
        yield _line(f"{name}_count", {"route": route}, buckets[-1])


def _gauge(name: str, words: str, value: float) -> Iterator[str]:
    return _family(name, "gauge", words, [({}, value)])


def _family(name: str, kind: str, words: str, values: Values) -> Iterator[str]:
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
