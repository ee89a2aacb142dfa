"""Framing as RFC 9112 defines it: ambiguous requests are refused and the connection closed,
complete requests are answered.
"""

import socket
from contextlib import suppress

import pytest

from headwise.serving.http.connection import MAX_PIPELINED
from tests.serving.running_server import POST, RunningServer, read_all


@pytest.mark.parametrize(
    "sent",
    [
        POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n{}  ",
        POST + b"Content-Length: +2\r\n\r\n{}",
        POST + b"Host: localhost\r\nContent-Length: 2\r\n\r\n{}",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX : y\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n X: y\r\n\r\n",
    ],
    ids=[
        "length and chunks",
        "chunks and length",
        "another coding",
        "chunked twice",
        "chunks in HTTP/1.0",
        "two lengths",
        "a sign",
        "two hosts",
        "no host",
        "blank before the colon",
        "a folded line",
    ],
)
def test_framing_that_can_be_read_in_two_ways_is_refused_and_closed(
    running: RunningServer, sent: bytes
) -> None:
    """RFC 9112: 3.2, 5.1, 5.2, 6.1, 6.2. What follows on the connection is never taken for a
    request."""
    with running.connect(
        sent=sent + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    ) as connection:
        found = read_all(connection)
    assert found.startswith(b"HTTP/1.1 400 ")
    assert found.count(b"HTTP/1.1 ") == 1
    assert b'"code"' in found


def test_many_tiny_chunks_end_the_request(running: RunningServer) -> None:
    """40,000 chunks of a byte came in one read and stopped the event loop for two seconds."""
    with running.connect(sent=POST + b"Transfer-Encoding: chunked\r\n\r\n") as connection:
        with suppress(OSError):
            connection.sendall(b"1\r\n \r\n" * 40_000)
        found = read_all(connection)
    assert found.startswith(b"HTTP/1.1 400 ")
    assert b"many_chunks" in found
    assert running.is_answering()


def test_honest_chunks_and_trailers_are_read(running: RunningServer) -> None:
    chunks = b"".join(
        b"%x\r\n%s\r\n" % (len(one), one) for one in (b'{"text": "a",', b' "model": "x"', b"}")
    )
    sent = (
        POST
        + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        + chunks
        + b"0\r\nX-Key: a\r\n\r\n"
    )
    with running.connect(sent=sent) as connection:
        found = read_all(connection)
    assert found.startswith(b"HTTP/1.1 404 ")
    assert b"no_model" in found


def test_both_headers_for_the_length_are_named(running: RunningServer) -> None:
    sent = POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    with running.connect(sent=sent) as connection:
        assert b"both Content-Length and Transfer-Encoding" in read_all(connection)
    with running.connect(
        sent=POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"
    ) as connection:
        assert b"Transfer-Encoding must be `chunked`" in read_all(connection)


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
def test_a_client_that_has_ended_its_side_gets_its_reply(
    running: RunningServer, version: bytes
) -> None:
    with running.connect(
        sent=b"GET /slow HTTP/%s\r\nHost: localhost\r\n\r\n" % version
    ) as connection:
        connection.shutdown(socket.SHUT_WR)
        found = read_all(connection)
    assert found.startswith(b"HTTP/1.1 100 " if version == b"1.1" else b"HTTP/1.1 200 OK")
    assert b"HTTP/1.1 200 OK" in found
    assert found.endswith(b'"done"')


def test_a_client_that_is_gone_altogether_is_noticed(running: RunningServer) -> None:
    with running.connect(sent=b"GET /watched HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        assert running.is_watched.wait(10)
    assert running.has_left.wait(10)


GET = b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEALTH = GET.replace(b"/slow", b"/healthz")


def test_more_requests_at_once_than_are_held_are_answered_as_far_as_they_are(
    running: RunningServer,
) -> None:
    """One is being answered and 16 wait; they are answered in order, the last reply says that the
    connection closes, and it closes cleanly.
    """
    with running.connect(sent=HEALTH + GET + HEALTH * 400) as connection:
        connection.sendall(HEALTH * 2_000)  # still on its way when the connection ends
        found = read_all(connection)
    replies = found.split(b"HTTP/1.1 ")[1:]
    # The first may be answered before the last is read.
    assert len(replies) in (
        MAX_PIPELINED + 1,
        MAX_PIPELINED + 2,
    )
    assert all(one.startswith(b"200 ") for one in replies)
    assert b'"done"' in replies[1]
    assert [b"connection: close" in one for one in replies] == [False] * (len(replies) - 1) + [True]
    assert running.is_answering()


@pytest.mark.parametrize(
    "bad",
    [b"GET /healthz HTTP/1.1\r\n\r\n", b"nonsense\r\n\r\n", b"x" * 20_000],
    ids=["no host", "no HTTP", "a large head"],
)
def test_requests_before_one_that_cannot_be_read_are_answered(
    running: RunningServer, bad: bytes
) -> None:
    with running.connect(sent=GET + HEALTH + bad) as connection:
        replies = read_all(connection).split(b"HTTP/1.1 ")[1:]
    assert [one[:4] for one in replies] == [b"200 ", b"200 "]
    assert b"connection: close" in replies[1]


def test_a_request_whose_body_is_on_its_way_while_another_is_answered(
    running: RunningServer,
) -> None:
    body = b'{"text": "a", "model": "x"}'
    with running.connect(
        sent=GET + POST + b"Connection: close\r\nContent-Length: 27\r\n\r\n" + body[:9]
    ) as connection:
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
        connection.sendall(body[9:])
        assert b"HTTP/1.1 404 " in read_all(connection)


@pytest.mark.parametrize("bad", [b"zz\r\n", b"1\r\na\r\n" * 5_000], ids=["no chunk", "many chunks"])
def test_a_bad_body_after_whole_requests_is_refused_after_their_replies(
    running: RunningServer, bad: bytes
) -> None:
    sent = GET + HEALTH + POST + b"Transfer-Encoding: chunked\r\n\r\n" + bad
    with running.connect(sent=sent) as connection:
        replies = read_all(connection).split(b"HTTP/1.1 ")[1:]
    assert [one[:4] for one in replies] == [b"200 ", b"200 ", b"400 "]
    assert b"connection: close" in replies[2]
    assert b'{"error":{"code":' in replies[2]
    assert running.is_answering()
