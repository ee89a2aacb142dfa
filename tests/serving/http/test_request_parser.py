"""Upgrade requests are ignored: the request is framed as HTTP/1.1, and so is what follows."""

import pytest

from tests.serving.running_server import POST, RunningServer, read_all

OFFERS = [
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n",
    b"Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n",
]
BODY = b'{"text": "a", "model": "x"}'
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
LAST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def _statuses(found: bytes) -> list[int]:
    return [int(part[:3]) for part in found.split(b"HTTP/1.1 ")[1:]]


@pytest.mark.parametrize("offer", OFFERS, ids=["HTTP/2", "WebSocket"])
@pytest.mark.parametrize(
    "framed",
    [b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY), CHUNKED],
    ids=["length", "chunks"],
)
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_body_behind_an_offer_is_read_as_framed(
    running: RunningServer, offer: bytes, framed: bytes, size: int
) -> None:
    """httptools takes the body for another protocol: the rest of the packet was dropped, and later
    bytes were read as a request.
    """
    sent = POST + offer + framed + LAST
    with running.connect() as connection:
        for start in range(0, len(sent), size):
            connection.sendall(sent[start : start + size])
        found = read_all(connection)
    assert _statuses(found) == [404, 200]
    assert b"no_model" in found


def test_a_body_that_looks_like_a_request_is_a_body(running: RunningServer) -> None:
    hidden = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with running.connect(
        sent=POST + OFFERS[0] + b"Content-Length: %d\r\n\r\n" % len(hidden)
    ) as connection:
        connection.sendall(hidden + LAST)
        found = read_all(connection)
    assert _statuses(found) == [400, 200]
    assert b"not_json" in found


@pytest.mark.parametrize("offer", OFFERS, ids=["HTTP/2", "WebSocket"])
def test_a_request_behind_an_offer_without_a_body_is_answered(
    running: RunningServer, offer: bytes
) -> None:
    asked = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + offer + b"\r\n"
    with running.connect(sent=asked + asked + LAST) as connection:
        assert _statuses(read_all(connection)) == [200, 200, 200]


def test_many_offers_at_once_are_as_bounded_as_other_requests(running: RunningServer) -> None:
    asked = b"GET /slow HTTP/1.1\r\nHost: localhost\r\n" + OFFERS[0] + b"\r\n"
    with running.connect(sent=asked * 40) as connection:
        found = read_all(connection)
    assert len(_statuses(found)) <= 17
    assert running.is_answering()


def test_a_tunnel_is_refused_and_closed(running: RunningServer) -> None:
    with running.connect(
        sent=b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n" + LAST
    ) as connection:
        found = read_all(connection)
    assert _statuses(found) == [501]
    assert b"no_tunnel" in found
