"""A server that gets a signal exits, even if a client does not read or a computation hangs."""

import json
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.serving.server_process import ServerProcess

SLOW = """
import pathlib, time
from headwise.models.steppers import ModelSteppers
quick = ModelSteppers.stepper
def stepper(self, *, attending):
    time.sleep(SECONDS if pathlib.Path("slow").exists() else 0)  # once it is warm
    return quick(self, attending=attending)
ModelSteppers.stepper = stepper
"""


def stream(server: ServerProcess) -> socket.socket:
    """A client that asks for a stream and never reads it, and a model that has become slow."""
    (server.log.parent / "slow").touch()
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    body = json.dumps({"text": "The dog is old", "stream": True}).encode()
    head = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    until = time.monotonic() + 20
    while not server.metric("headwise_accepted"):
        assert time.monotonic() < until
    return connection


def test_a_second_signal_ends_the_server_at_once(tmp_path: Path) -> None:
    with (
        ServerProcess(log=tmp_path / "log.txt", before=SLOW.replace("SECONDS", "30")) as server,
        stream(server),
    ):
        server.process.terminate()
        time.sleep(0.2)
        assert server.process.poll() is None
        start = time.monotonic()
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(10) == 130
        assert time.monotonic() - start < 5
    assert "Traceback" not in server.log.read_text(encoding="utf-8")


@pytest.mark.prove
def test_what_hangs_is_left_behind_after_the_deadline(tmp_path: Path) -> None:
    """One signal; the only worker never comes back."""
    before = SLOW.replace("SECONDS", "1000")
    with (
        ServerProcess("--deadline", "1", log=tmp_path / "log.txt", before=before) as server,
        stream(server),
    ):
        start = time.monotonic()
        assert server.stop(seconds=20) == 143
        assert time.monotonic() - start < 10
    log = server.log.read_text(encoding="utf-8")
    assert "did not end in time" in log
    assert "Traceback" not in log
