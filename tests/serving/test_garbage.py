"""A request leaves no reference cycles: the garbage collector would hold up the event loop for all
clients while it removes those of thousands of requests.
"""

import gc
import http.client
import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.serving.running_server import RunningServer

NUM_REQUESTS = 8
SENTENCE = {"text": "The dog is old.", "decoding": {"kind": "greedy"}}


@pytest.fixture(autouse=True, scope="module")
def _only_what_is_new_is_looked_at() -> Iterator[None]:
    """All that was made before, in other tests for one, is no garbage of a request."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/healthz", None),
        ("GET", "/v1/models", None),
        ("POST", "/v1/translate", SENTENCE),
        ("POST", "/v1/translate", SENTENCE | {"decoding": {"kind": "beam", "size": 2}}),
        ("POST", "/v1/translate", SENTENCE | {"stream": True}),
        ("POST", "/v1/trace", SENTENCE),
        ("POST", "/v1/translate", {"text": 1}),
        ("GET", "/v1/nothing", None),
    ],
    ids=["health", "models", "greedy", "beam", "stream", "trace", "refused", "no such address"],
)
def test_a_request_leaves_no_cycles(
    running: RunningServer, method: str, path: str, body: dict[str, Any] | None
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
    content = None if body is None else json.dumps(body).encode()

    def ask(method: str = method, path: str = path, content: bytes | None = content) -> int:
        connection.request(method, path, content, {"Content-Type": "application/json"})
        with connection.getresponse() as reply:
            reply.read()
            return reply.status

    # What is made once, when the server starts and at the first request, is no garbage of each.
    while ask("GET", "/readyz", None) != 200:
        time.sleep(0.01)
    ask()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(NUM_REQUESTS):
            ask()
        gc.collect()
        found = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
        connection.close()
    assert {name: number for name, number in found.items() if number >= NUM_REQUESTS} == {}
