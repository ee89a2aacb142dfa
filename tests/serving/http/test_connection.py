"""Connections that send nothing, send slowly or do not read are closed, and other clients are
answered meanwhile.
"""

import asyncio
import socket
import time
from contextlib import suppress

import pytest

from headwise.serving.app import create_app
from headwise.serving.http import connection as module
from headwise.serving.http import connection_limit
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.uvicorn_server import configure, open_socket
from headwise.serving.work.loaded_models import LoadedModel
from tests.serving.event_loops import run_alone
from tests.serving.running_server import POST, RunningServer, read_all


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
    ids=[
        "idle",
        "a head that drips",
        "a second head that drips",
        "a body that drips after the reply",
    ],
)
def test_whoever_does_not_ask_is_closed(
    running: RunningServer, monkeypatch: pytest.MonkeyPatch, sent: bytes, dripping: bytes
) -> None:
    monkeypatch.setattr(module, "HEAD_SECONDS", 0.4)
    at_least = 0.0 if b"9999" in sent else 0.2  # after a reply there is nothing to wait for
    with running.connect(sent=sent) as connection:
        assert at_least < seconds_until_closed(connection, dripping=dripping) < 5


def test_many_idle_connections_do_not_shut_others_out(
    running: RunningServer,
) -> None:
    idle = [running.connect() for _ in range(23)]
    assert all(running.is_answering() for _ in range(5))
    assert seconds_until_closed(idle[0]) < 5  # the longest idle one was dropped
    assert len(running.server.server_state.connections) <= 8
    for connection in idle:
        connection.close()


def test_another_machine_has_a_bound_of_its_own(
    running: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_limit, "MAX_PER_CLIENT", 2)
    monkeypatch.setattr(module, "is_loopback", lambda host: False)
    first, second, third = (running.connect() for _ in range(3))
    assert seconds_until_closed(first) < 5
    for connection in (first, second, third):
        connection.close()
    assert running.is_answering()


def test_a_client_that_does_not_read_gives_its_place_back(models: dict[str, LoadedModel]) -> None:
    # Only this server has a short deadline: elsewhere a busy machine would meet it.
    running = RunningServer(models, deadline_seconds=0.5)
    try:
        _check_an_unread_reply(running)
    finally:
        running.stop()


def _check_an_unread_reply(running: RunningServer) -> None:
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
def test_a_large_head_is_told_so(running: RunningServer, is_whole: bool) -> None:
    sent = (
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "
        + b"y" * 20_000
        + (b"\r\n\r\n" if is_whole else b"")
    )
    with running.connect(sent=sent) as connection:
        assert connection.recv(4096).startswith(b"HTTP/1.1 431 ")


def test_half_sent_bodies_do_not_shut_others_out(running: RunningServer) -> None:
    """They have sent whole heads, so that they look like requests at work."""
    slow = [running.connect(sent=POST + b"Content-Length: 100\r\n\r\n{") for _ in range(23)]
    assert all(running.is_answering() for _ in range(5))
    for connection in slow:
        connection.close()


def test_when_all_are_being_answered_the_newcomer_is_told_when_to_return(
    running: RunningServer,
) -> None:
    asked = b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n"
    running.holds_back.set()
    others = [running.connect(sent=asked) for _ in range(7)]
    until = time.monotonic() + 10
    while len(running.server.server_state.tasks) < 7 and time.monotonic() < until:
        time.sleep(0.001)
    with running.connect(sent=asked) as connection:
        found = read_all(connection).lower()
    assert found.startswith(b"http/1.1 503 ")
    assert b"retry-after: 1" in found
    running.holds_back.clear()
    for one in others:
        assert one.recv(4096).startswith(b"HTTP/1.1 200 ")
        one.close()


def test_a_refused_client_that_is_still_sending_can_read_why(running: RunningServer) -> None:
    with running.connect(sent=POST + b"Content-Length: 5000000\r\n\r\n") as connection:
        with suppress(OSError):
            for _ in range(5):
                connection.sendall(b" " * 1_000_000)
        assert read_all(connection).startswith(b"HTTP/1.1 413 ")


def test_the_event_loop_is_not_whatever_is_installed(models: dict[str, LoadedModel]) -> None:
    """uvloop does not pass open files to a process it starts, and worker processes need some."""
    assert configure(create_app(models, ServerSettings())).loop == "asyncio"


def test_small_writes_leave_at_once() -> None:
    """Head and body of a reply are two writes: with Nagle's algorithm the second waits until the
    client confirms the first, 40 ms later."""
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
