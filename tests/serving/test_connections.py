"""Connections that ask nothing, drip, or do not read: they end, and meanwhile others are answered."""

import asyncio
import http.client
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, suppress

import pytest
import uvicorn
from fastapi import Request

from headwise.serving import connections, slots
from headwise.serving.app import create_app
from headwise.serving.limits import ServerSettings
from headwise.serving.loaded import LoadedModel
from headwise.serving.running import configure, open_socket
from headwise.serving.state import Server
from headwise.serving.streaming import HeldResponse
from tests.serving.loops import run_alone


class Running:
    """The server in a thread, on a real socket, with an address that never stops sending."""

    def __init__(self, models: dict[str, LoadedModel]) -> None:
        settings = ServerSettings(port=0, deadline_seconds=0.5)
        app = create_app(models, settings)
        self.state: Server = app.state.server

        async def endless() -> HeldResponse:
            held = AsyncExitStack()
            await held.enter_async_context(self.state.place("tiny"))
            return HeldResponse(_shout(), held)

        async def slow() -> str:
            await asyncio.sleep(0.3)
            return "done"

        async def watched(request: Request) -> None:
            self.is_watched.set()
            while not await request.is_disconnected():
                await asyncio.sleep(0.01)
            self.has_left.set()

        self.is_watched, self.has_left = threading.Event(), threading.Event()
        app.get("/endless", response_model=None)(endless)
        app.get("/slow")(slow)
        app.get("/watched")(watched)
        self.listening = open_socket(settings)
        self.port = self.listening.getsockname()[1]
        config = configure(app)
        config.http.slots.most = 7  # type: ignore[union-attr]
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=lambda: self.server.run(sockets=[self.listening]))
        self.thread.start()

    def connect(self, *, sent: bytes = b"") -> socket.socket:
        found = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        found.sendall(sent)
        return found

    def is_answering(self) -> bool:
        asking = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        asking.request("GET", "/healthz")
        status = asking.getresponse().status
        asking.close()
        return status == 200


async def _shout() -> AsyncIterator[str]:
    while True:
        yield "a" * 65_536
        await asyncio.sleep(0)


@pytest.fixture
def running(models: dict[str, LoadedModel], monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.4)
    monkeypatch.setattr(slots, "PATIENCE_SECONDS", 0.0)
    found = Running(models)
    try:
        yield found
    finally:
        found.server.should_exit = True
        found.thread.join(20)
        assert not found.thread.is_alive()


def seconds_until_closed(connection: socket.socket, *, dripping: bytes = b"") -> float:
    start = time.monotonic()
    connection.settimeout(0.05)
    while time.monotonic() - start < 10:
        try:
            if dripping:
                connection.send(dripping)
            if not connection.recv(4096):
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - start


@pytest.mark.parametrize(
    ("sent", "dripping"),
    [
        (b"", b""),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ", b"y"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /", b"y"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n", b"y"),
    ],
    ids=["idle", "a head that drips", "a second head that drips", "a body that drips after the reply"],
)
def test_whoever_does_not_ask_is_closed(running: Running, sent: bytes, dripping: bytes) -> None:
    at_least = 0.0 if b"9999" in sent else 0.2  # after a reply there is nothing to wait for
    with running.connect(sent=sent) as connection:
        assert at_least < seconds_until_closed(connection, dripping=dripping) < 5


def test_many_idle_connections_do_not_shut_others_out(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 60.0)
    idle = [running.connect() for _ in range(23)]
    assert all(running.is_answering() for _ in range(5))
    assert seconds_until_closed(idle[0]) < 5  # the longest idle made room
    assert len(running.server.server_state.connections) <= 8
    for connection in idle:
        connection.close()


def test_another_machine_has_a_bound_of_its_own(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 60.0)
    monkeypatch.setattr(slots, "MAX_OF_ONE", 2)
    monkeypatch.setattr(connections, "is_loopback", lambda host: False)
    first, second, third = (running.connect() for _ in range(3))
    assert seconds_until_closed(first) < 5
    for connection in (first, second, third):
        connection.close()
    assert running.is_answering()


def test_a_client_that_does_not_read_gives_its_place_back(running: Running) -> None:
    start = time.monotonic()  # not when this thread has noticed it, which on a busy machine is late
    with running.connect(sent=b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        until = start + 10
        while not running.state.num_accepted:
            assert time.monotonic() < until
            time.sleep(0.001)
        while running.state.num_accepted:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert 0.5 < time.monotonic() - start < 5
        assert not running.server.server_state.tasks


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_large_head_is_told_so(running: Running, is_whole: bool) -> None:
    sent = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 20_000 + (b"\r\n\r\n" if is_whole else b"")
    with running.connect(sent=sent) as connection:
        assert connection.recv(4096).startswith(b"HTTP/1.1 431 ")


POST = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def read_all(connection: socket.socket) -> bytes:
    connection.settimeout(10)
    found = b""
    while more := connection.recv(65_536):
        found += more
    return found


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
def test_framing_that_can_be_read_in_two_ways_is_refused_and_closed(running: Running, sent: bytes) -> None:
    """RFC 9112: 3.2, 5.1, 5.2, 6.1, 6.2. What follows on the connection is never taken for a request."""
    with running.connect(sent=sent + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") as connection:
        found = read_all(connection)
    assert found.startswith(b"HTTP/1.1 400 ")
    assert found.count(b"HTTP/1.1 ") == 1
    assert b'"code"' in found


def test_many_tiny_chunks_end_the_request(running: Running) -> None:
    """40,000 chunks of a byte came in one read and stopped the event loop for two seconds."""
    with running.connect(sent=POST + b"Transfer-Encoding: chunked\r\n\r\n") as connection:
        with suppress(OSError):
            connection.sendall(b"1\r\n \r\n" * 40_000)
        found = read_all(connection)
    assert found.startswith(b"HTTP/1.1 400 ")
    assert b"many_chunks" in found
    assert running.is_answering()


def test_honest_chunks_and_trailers_are_read(running: Running) -> None:
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in (b'{"text": "a",', b' "model": "x"', b"}"))
    sent = POST + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\nX-Key: a\r\n\r\n"
    with running.connect(sent=sent) as connection:
        found = read_all(connection)
    assert found.startswith(b"HTTP/1.1 404 ")
    assert b"no_model" in found


def test_a_client_that_has_ended_its_side_gets_its_reply(running: Running) -> None:
    with running.connect(sent=b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n") as connection:
        connection.shutdown(socket.SHUT_WR)
        found = read_all(connection)
    assert found.startswith(b"HTTP/1.1 100 ")
    assert b"HTTP/1.1 200 OK" in found
    assert found.endswith(b'"done"')


def test_a_client_that_is_gone_altogether_is_noticed(running: Running) -> None:
    with running.connect(sent=b"GET /watched HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        assert running.is_watched.wait(10)
    assert running.has_left.wait(10)


def test_half_sent_bodies_do_not_shut_others_out(running: Running) -> None:
    """They have sent whole heads, so that they look like requests at work."""
    slow = [running.connect(sent=POST + b"Content-Length: 100\r\n\r\n{") for _ in range(23)]
    assert all(running.is_answering() for _ in range(5))
    for connection in slow:
        connection.close()


def test_when_all_are_being_answered_the_newcomer_is_told_when_to_return(running: Running) -> None:
    asked = b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n"
    others = [running.connect(sent=asked) for _ in range(7)]
    until = time.monotonic() + 10
    while len(running.server.server_state.tasks) < 7 and time.monotonic() < until:
        time.sleep(0.001)
    with running.connect(sent=asked) as connection:
        found = read_all(connection).lower()
    assert found.startswith(b"http/1.1 503 ")
    assert b"retry-after: 1" in found
    for one in others:
        assert one.recv(4096).startswith(b"HTTP/1.1 200 ")
        one.close()


def test_a_refused_client_that_is_still_sending_can_read_why(running: Running) -> None:
    with running.connect(sent=POST + b"Content-Length: 5000000\r\n\r\n") as connection:
        with suppress(OSError):
            for _ in range(5):
                connection.sendall(b" " * 1_000_000)
        assert read_all(connection).startswith(b"HTTP/1.1 413 ")


def test_the_event_loop_is_not_whatever_is_installed(models: dict[str, LoadedModel]) -> None:
    """uvloop does not hand open files to a process it starts, and searching processes are given some."""
    assert configure(create_app(models, ServerSettings())).loop == "asyncio"


def test_small_writes_leave_at_once() -> None:
    """Head and body of a reply are two writes: with Nagle's algorithm the second waits until the client confirms the first, 40 ms later."""
    accepted: list[int] = []

    async def scene() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            found = writer.get_extra_info("socket")
            accepted.append(found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = open_socket(ServerSettings(port=0))
        async with await asyncio.start_server(answer, sock=listening):
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            await reader.read()
            writer.close()

    run_alone(scene())
    assert accepted == [1]
