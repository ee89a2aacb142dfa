"""API keys are random, hashed and required; rate limits hold."""

import stat
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from headwise.errors import DataError, UsageError
from headwise.serving.app import create_app
from headwise.serving.http.api_keys import (
    KeyRing,
    add_key,
    check_keys_given,
    hash_key,
    read_keys,
)
from headwise.serving.http.errors import Refusal
from headwise.serving.http.rate_limit import MAX_CALLERS, RateLimit
from headwise.serving.http.server_settings import ServerSettings, is_loopback
from headwise.serving.work.loaded_models import LoadedModel
from tests.serving.event_loops import run_alone


def test_a_key_is_kept_as_a_hash_only(tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    key, other = add_key(file, "alice"), add_key(file, "bob")
    assert key != other
    assert len(key) >= 43
    text = file.read_text(encoding="utf-8")
    assert key not in text
    assert read_keys(file) == {"alice": hash_key(key), "bob": hash_key(other)}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    ring = KeyRing(read_keys(file))
    assert (ring.find(key), ring.find(other)) == ("alice", "bob")


def test_bad_keys_files_and_names_are_named_without_their_content(tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    with pytest.raises(UsageError, match="is not a key file"):
        read_keys(file)
    add_key(file, "alice")
    with pytest.raises(UsageError, match="has a key called"):
        add_key(file, "alice")
    with pytest.raises(UsageError, match="cannot be the name of a key"):
        add_key(file, "a b")
    file.write_text("# mine\n\nalice secret\n", encoding="utf-8")
    with pytest.raises(DataError, match="is not a name and the hash") as caught:
        read_keys(file)
    assert caught.value.line == 3
    assert "secret" not in str(caught.value)
    file.write_text("#" * 1_100_000, encoding="utf-8")
    with pytest.raises(DataError, match="too large"):
        read_keys(file)


def test_keys_that_others_can_write_are_not_believed(tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    add_key(file, "alice")
    for mode in (0o666, 0o620):
        file.chmod(mode)
        with pytest.raises(UsageError, match="can be written by others"):
            read_keys(file)
    file.chmod(0o644)
    assert list(read_keys(file)) == ["alice"]


def test_a_rate_is_a_bucket_that_fills_again() -> None:
    now = [0.0]
    limit = RateLimit(60, clock=lambda: now[0])
    for _ in range(60):
        limit.take("a")
    with pytest.raises(Refusal, match="more than 60 requests") as caught:
        limit.take("a")
    assert (caught.value.status, caught.value.retry_after) == (429, 1)
    limit.take("b")
    now[0] = 1.0
    limit.take("a")
    with pytest.raises(Refusal):
        limit.take("a")
    slow = RateLimit(2, clock=lambda: now[0])
    slow.take("a")
    slow.take("a")
    with pytest.raises(Refusal) as caught:
        slow.take("a")
    assert caught.value.retry_after == 30
    for number in range(MAX_CALLERS + 10):
        limit.take(str(number))
    assert len(limit._buckets) == MAX_CALLERS


def test_the_server_asks_for_a_key_in_a_header(
    models: dict[str, LoadedModel], tmp_path: Path
) -> None:
    file = tmp_path / "keys.txt"
    key = add_key(file, "alice")
    settings = ServerSettings(keys=file, rate=6)
    with TestClient(create_app(models, settings), base_url="http://127.0.0.1") as client:
        reply = client.get("/v1/models")
        assert reply.status_code == 401
        assert reply.headers["www-authenticate"] == "Bearer"
        assert reply.json()["error"]["code"] == "no_key"
        assert "密钥" in reply.json()["error"]["message_zh"]
        assert client.get(f"/v1/models?key={key}").status_code == 401
        assert (
            client.get("/v1/models", headers={"Authorization": "Bearer hw_wrong"}).status_code
            == 403
        )
        for headers in ({"Authorization": f"Bearer {key}"}, {"X-API-Key": key}):
            assert client.get("/v1/models", headers=headers).status_code == 200
        assert client.get("/metrics").status_code == 401
        assert client.get("/healthz").status_code == 200
        body = {"q": "I am.", "source": "en", "target": "de"}
        assert client.post("/translate", json=body).json().keys() == {"error"}
        assert client.post("/translate", json={**body, "api_key": key}).status_code == 200
        statuses = [
            client.get("/v1/models", headers={"X-API-Key": key}).status_code for _ in range(4)
        ]
        assert statuses == [200, 200, 200, 429]
        assert int(client.get("/v1/models", headers={"X-API-Key": key}).headers["retry-after"]) >= 1


def ask_without_a_body(app: FastAPI, path: str, *headers: tuple[bytes, bytes]) -> int:
    """The status that a client gets whose body never comes."""
    sent: list[Any] = []

    async def receive() -> Any:
        raise AssertionError("the body was waited for")

    async def send(message: Any) -> None:
        sent.append(message)

    given = [(b"host", b"localhost"), (b"content-type", b"application/json"), *headers]
    scope = {"type": "http", "method": "POST", "path": path, "headers": given, "query_string": b""}
    run_alone(app({**scope, "client": ("192.0.2.1", 1)}, receive, send))
    return int(sent[0]["status"])


def test_keys_and_rates_are_looked_at_before_the_body(
    models: dict[str, LoadedModel], tmp_path: Path
) -> None:
    file = tmp_path / "keys.txt"
    key = add_key(file, "mine").encode()
    app = create_app(models, ServerSettings(keys=file, rate=3))
    assert ask_without_a_body(app, "/v1/translate") == 401
    assert ask_without_a_body(app, "/v1/translate", (b"x-api-key", b"hw_wrong")) == 403
    assert ask_without_a_body(app, "/translate", (b"authorization", b"Bearer hw_wrong")) == 403
    # Refused requests are limited too, also on LibreTranslate's routes, where the body may hold a
    # key.
    assert ask_without_a_body(app, "/v1/translate") == 429
    assert ask_without_a_body(app, "/translate") == 429
    # From the same address, a key that is known has an allowance of its own.
    for _ in range(3):
        # Of `receive`, which was called.
        assert ask_without_a_body(app, "/v1/translate", (b"x-api-key", key)) == 500
    assert ask_without_a_body(app, "/v1/translate", (b"x-api-key", key)) == 429


def test_where_a_key_belongs_is_told(models: dict[str, LoadedModel], tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    add_key(file, "mine")
    with TestClient(
        create_app(models, ServerSettings(keys=file)), base_url="http://127.0.0.1"
    ) as client:
        reply = client.post("/translate", json={"q": "I am.", "source": "en", "target": "de"})
        assert (reply.status_code, "as `api_key` in the body" in reply.json()["error"]) == (
            401,
            True,
        )
        assert "api_key" not in client.post("/v1/translate", json={"text": "I am."}).text


@pytest.mark.parametrize("path", ["/translate", "/detect"])
def test_bodies_without_a_key_are_read_as_often_as_an_address_may_ask(
    models: dict[str, LoadedModel], tmp_path: Path, path: str
) -> None:
    """Bodies that could not be read to their key were read and parsed at any rate."""
    file = tmp_path / "keys.txt"
    key = add_key(file, "mine")
    body = {"q": "I am.", "source": "en", "target": "de"}
    with TestClient(
        create_app(models, ServerSettings(keys=file, rate=3)), base_url="http://127.0.0.1"
    ) as client:
        # A known key in the body is charged for, and its address is not.
        statuses = [client.post(path, json={**body, "api_key": key}).status_code for _ in range(3)]
        assert statuses == [200, 200, 200]
        bad: list[Any] = [
            {"content": b"{"},
            {"json": {"source": "en"}},
            {"json": {**body, "api_key": "hw_wrong"}},
        ]
        headers = {"content-type": "application/json"}
        assert [client.post(path, headers=headers, **one).status_code for one in bad] == [
            400,
            400,
            403,
        ]
        assert client.post(path, content=b"{", headers=headers).status_code == 429
        assert client.post(path, json={**body, "api_key": key}).status_code == 429


def test_without_keys_an_address_has_an_allowance_and_pays_once(
    models: dict[str, LoadedModel],
) -> None:
    app = create_app(models, ServerSettings(rate=3))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        body = {"q": "I am.", "source": "en", "target": "de"}
        statuses = [client.post("/translate", json=body).status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        assert client.post("/v1/translate", content=b"{").status_code == 429  # whatever is sent


def test_an_open_address_needs_keys(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "192.168.1.7", "example.org"):
        assert ServerSettings(host=host).is_public
        with pytest.raises(UsageError, match="no keys were given"):
            check_keys_given(ServerSettings(host=host))
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        assert is_loopback(host)
        check_keys_given(ServerSettings(host=host))
    empty = tmp_path / "keys.txt"
    empty.write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="holds no key"):
        check_keys_given(ServerSettings(keys=empty))
    assert ServerSettings().requests_a_minute == 0
    assert ServerSettings(host="0.0.0.0").requests_a_minute == 60
