"""Every reason for not being answered: queue full, deadline exceeded, disconnected, stopping."""

import asyncio
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from headwise.serving.app import create_app
from headwise.serving.http.errors import InternalErrors
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.worker import Worker
from tests.serving.event_loops import run_alone
from tests.serving.slow_models import slow_models

LONG = {"text": "The dog is old", "decoding": {"kind": "greedy"}}


def wait_until_warm(app: FastAPI) -> None:
    until = time.monotonic() + 30
    while not app.state.server.is_warm:
        assert time.monotonic() < until
        time.sleep(0.005)


def test_a_full_queue_says_when_to_come_back() -> None:
    models, _ = slow_models(0.02)
    app = create_app(models, ServerSettings(queue=2, queue_seconds=0.05))
    with TestClient(app, base_url="http://localhost") as client, ThreadPoolExecutor(8) as pool:
        wait_until_warm(app)
        replies = list(pool.map(lambda _: client.post("/v1/translate", json=LONG), range(8)))
    statuses = [reply.status_code for reply in replies]
    assert set(statuses) == {200, 503}
    refused = next(reply for reply in replies if reply.status_code == 503)
    assert refused.json()["error"]["code"] == "full"
    assert refused.headers["retry-after"].isdigit()
    assert app.state.server.num_accepted == 0


def test_too_late_is_told_and_the_work_stops() -> None:
    models, stepper = slow_models(0.02)
    app = create_app(models, ServerSettings(deadline_seconds=0.1))
    with TestClient(app, base_url="http://localhost") as client:
        wait_until_warm(app)
        before = stepper.num_steps
        reply = client.post(
            "/v1/translate", json={"text": "a b c d e f g h " * 8, "decoding": {"kind": "greedy"}}
        )
        assert reply.status_code == 504
        assert "0.1 seconds" in reply.json()["error"]["message"]
        after = stepper.num_steps
        time.sleep(0.1)
        assert stepper.num_steps - after <= 2
        assert after - before <= 8


async def _call(
    app: FastAPI, body: dict[str, Any], *, leaves: Callable[[], bool]
) -> list[dict[str, Any]]:
    """A client that disconnects: what it was sent until then."""
    sent: list[dict[str, Any]] = []
    messages = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        while not leaves():
            await asyncio.sleep(0.002)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/translate",
        "headers": headers,
        "query_string": b"",
    }
    await app(
        {**scope, "asgi": {"version": "3.0", "spec_version": "2.3"}, "client": ("127.0.0.1", 1)},
        receive,
        send,
    )
    return sent


@pytest.mark.parametrize("streamed", [False, True])
def test_when_the_client_leaves_the_work_stops(streamed: bool) -> None:
    models, stepper = slow_models(0.01)
    app = create_app(models, ServerSettings())

    async def scene() -> None:
        async with app.router.lifespan_context(app):
            while not app.state.server.is_warm:
                await asyncio.sleep(0.005)
            body = {
                "text": "a b c d e f g h " * 30,
                "decoding": {"kind": "greedy"},
                "stream": streamed,
            }
            before = stepper.num_steps
            await _call(app, body, leaves=lambda: stepper.num_steps > before + 2)
            assert app.state.server.num_accepted == 0
            after = stepper.num_steps
            await asyncio.sleep(0.1)
            assert stepper.num_steps - after <= 2
            # The next client is served.
            sent = await _call(
                app, {"text": "I am.", "decoding": {"kind": "greedy"}}, leaves=lambda: False
            )
            assert sent[0]["status"] == 200

    run_alone(scene())


def test_a_stopping_server_refuses_new_work_and_says_it_is_not_ready() -> None:
    models, _ = slow_models(0.0)
    app = create_app(models, ServerSettings())
    with TestClient(app, base_url="http://localhost") as client:
        wait_until_warm(app)
        app.state.server.is_draining = True
        assert client.get("/readyz").json() == {"status": "stopping"}
        reply = client.post("/v1/translate", json=LONG)
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "stopping")
        assert "retry-after" in reply.headers
        assert client.get("/healthz").status_code == 200


def test_a_bug_is_a_500_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    """This client raises whatever leaves the application, as uvicorn writes it into the log:
    nothing does."""
    models, _ = slow_models(0.0)
    app = create_app(models, ServerSettings())
    with TestClient(app, base_url="http://localhost") as client, caplog.at_level("DEBUG"):
        wait_until_warm(app)
        models["tiny"].value.offer.stepper = lambda *, attending: 1 / 0
        reply = client.post("/v1/translate", json=LONG)
        assert reply.status_code == 500
        assert reply.json()["error"]["code"] == "bug"
        assert "division" not in reply.text
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "ZeroDivisionError at /v1/translate" in caplog.text
        assert "division by zero" not in caplog.text
        assert not any(record.exc_info for record in caplog.records)
        assert 'status="500"' in client.get("/metrics").text
        assert app.state.server.is_ready


def test_a_bug_after_the_first_word_ends_the_reply(caplog: pytest.LogCaptureFixture) -> None:
    async def break_off(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ValueError("what was sent")

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    run_alone(InternalErrors(break_off)({"type": "http", "path": "/"}, receive, send))
    assert [message["type"] for message in sent] == ["http.response.start"]
    assert "ValueError" in caplog.text
    assert "what was sent" not in caplog.text


def test_a_model_whose_process_is_not_there_yet_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was accepted for a process that stood still while it loaded its model was late after
    half a minute."""
    models, _ = slow_models(0.0)
    app = create_app(models, ServerSettings(queue_seconds=0.1))
    with TestClient(app, base_url="http://localhost") as client:
        wait_until_warm(app)
        with monkeypatch.context() as patched:
            patched.setattr(Worker, "is_alive", property(lambda self: self.name != "tiny"))
            reply = client.post("/v1/translate", json=LONG)
            assert (reply.status_code, reply.json()["error"]["code"]) == (503, "starting")
            assert int(reply.headers["retry-after"]) >= 1
            assert (
                client.post(
                    "/translate", json={"q": "I am.", "source": "en", "target": "de"}
                ).status_code
                == 503
            )
        assert client.post("/v1/translate", json=LONG).status_code == 200
