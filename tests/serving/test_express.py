"""The short way and the long way give the same replies."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from headwise.serving.express import Express

BODIES: dict[str, Any] = {
    "one": {"text": "The dog is old."},
    "several": {"text": ["I am.", ""], "n_best": 2, "decoding": {"kind": "beam", "size": 3}},
    "refused": {"text": "I am.", "n_best": 4, "decoding": {"kind": "greedy"}},
    "no such model": {"text": "I am.", "model": "other"},
    "wrong type": {"text": 7},
    "unknown field": {"text": "I am.", "colour": "red"},
    "stream": {"text": "I am.", "stream": True},
}


@pytest.mark.parametrize("name", BODIES)
def test_the_short_way_is_the_long_way(client: TestClient, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    short = client.post("/v1/translate", json=BODIES[name])

    async def long(self: Express, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)

    monkeypatch.setattr(Express, "__call__", long)
    by_long = client.post("/v1/translate", json=BODIES[name])
    assert (short.status_code, short.text) == (by_long.status_code, by_long.text)
    assert short.headers == by_long.headers
    metrics = client.get("/metrics").text
    assert 'route="/v1/translate"' in metrics
