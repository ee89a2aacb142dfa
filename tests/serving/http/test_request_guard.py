"""Checks before the route: host, sizes, content types, slow bodies; and headers of all replies."""

import asyncio
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headwise.serving.app import create_app
from headwise.serving.http import request_guard
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import LoadedModel
from tests.serving.event_loops import run_alone


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8000", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:8000", 200),
        ("evil.example", 400),
        ("localhost.evil.example", 400),
        ("localhost@evil.example", 400),
        ("127.0.0.1:8311@evil.example", 400),
        ("[::1].evil.example", 400),
        ("", 400),
        ("127.0.0.1/../v1", 400),
    ],
)
def test_only_its_own_names_are_answered_to(client: TestClient, host: str, status: int) -> None:
    reply = client.get("/healthz", headers={"Host": host})
    assert reply.status_code == status
    if status == 400:
        assert reply.json()["error"]["code"] == "wrong_host"


def test_names_can_be_added(models: dict[str, LoadedModel]) -> None:
    with TestClient(create_app(models, ServerSettings(hosts=("mine.example",)))) as client:
        assert client.get("/healthz", headers={"Host": "mine.example"}).status_code == 200
        assert client.get("/healthz", headers={"Host": "other.example"}).status_code == 400
    with TestClient(create_app(models, ServerSettings(hosts=("*",)))) as client:
        assert client.get("/healthz", headers={"Host": "other.example"}).status_code == 200
    with TestClient(
        create_app(models, ServerSettings(host="0.0.0.0"))
    ) as client:  # such a server requires keys
        assert client.get("/healthz", headers={"Host": "any.example"}).status_code == 200


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""],
)
def test_json_only(client: TestClient, kind: str) -> None:
    reply = client.post("/v1/translate", content=b'{"text": "a"}', headers={"Content-Type": kind})
    assert (reply.status_code, reply.json()["error"]["code"]) == (415, "not_json")


@pytest.mark.parametrize("length", ["9" * 30, "70000", "-1", "x"])
def test_a_declared_length_is_believed_when_too_large(client: TestClient, length: str) -> None:
    headers = {"Content-Type": "application/json", "Content-Length": length}
    assert client.post("/v1/translate", content=b"{}", headers=headers).status_code == 413


def test_an_undeclared_length_is_counted(client: TestClient) -> None:
    def chunks() -> Any:
        for _ in range(100):
            yield b" " * 1_000

    reply = client.post(
        "/v1/translate", content=chunks(), headers={"Content-Type": "application/json"}
    )
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "too_large")
    assert "65,536" in reply.json()["error"]["message"]


@pytest.mark.parametrize(("wait", "status"), [(10.0, 408), (0.0, None)])
def test_a_body_that_does_not_come(
    models: dict[str, LoadedModel], monkeypatch: pytest.MonkeyPatch, wait: float, status: int | None
) -> None:
    """A slow client is told so; one that left half-way is forgotten."""
    monkeypatch.setattr(request_guard, "BODY_SECONDS", 0.05)
    app = create_app(models)
    sent: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await asyncio.sleep(wait)
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
    run_alone(app(scope, receive, send))
    assert [message.get("status") for message in sent[:1]] == ([] if status is None else [status])


def test_every_reply_is_cautious(client: TestClient) -> None:
    for reply in (
        client.get("/healthz"),
        client.get("/nowhere"),
        client.post("/v1/translate"),
        client.get("/"),
    ):
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert client.get("/docs").status_code == 404
    assert client.put("/v1/models", json={}).status_code == 405
    assert (
        client.options("/v1/models", headers={"Origin": "http://x"}).headers.get(
            "access-control-allow-origin"
        )
        is None
    )


def test_metrics_are_lines_that_prometheus_reads(client: TestClient) -> None:
    client.get("/nowhere/secret")
    client.get("/healthz")
    text = client.get("/metrics").text
    names = set()
    for line in text.splitlines():
        if line.startswith("# TYPE"):
            names.add(line.split()[2])
            continue
        if line.startswith("#"):
            continue
        name, number = line.rsplit(" ", 1)
        float(number)
        assert any(name.startswith(known) for known in names), line
    assert 'headwise_requests_total{route="/healthz",status="200"}' in text
    assert 'headwise_requests_total{route="other",status="404"}' in text
    assert "secret" not in text
    counts = [
        line
        for line in text.splitlines()
        if line.startswith("headwise_request_seconds_bucket") and "healthz" in line
    ]
    values = [int(line.rsplit(" ", 1)[1]) for line in counts]
    assert values == sorted(values)
    assert values[-1] >= 1


def test_no_redirect_to_a_host_that_was_asked_for(client: TestClient) -> None:
    reply = client.get("/v1/models/", follow_redirects=False)
    assert (reply.status_code, "location" in reply.headers) == (404, False)


def test_a_head_has_a_bound(client: TestClient) -> None:
    for reply in (
        client.get("/healthz", headers={f"X-{n}": "y" for n in range(4_000)}),
        client.get("/healthz?" + "a" * 20_000),
        client.get("/" + "a" * 20_000),
    ):
        assert (reply.status_code, reply.json()["error"]["code"]) == (431, "large_head")
