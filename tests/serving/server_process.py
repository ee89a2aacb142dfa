"""A real server process on a free port that cannot reach other machines (S11)."""

import http.client
import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any, Self

from tests.processes import Python
from tests.serving.conftest import BUNDLE

ROOT = Path(__file__).resolve().parents[2]
NO_NETWORK = """
import socket, sys
real = socket.socket.connect
def connect(self, address):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise AssertionError(f"the server tried to reach {address}")
    return real(self, address)
socket.socket.connect = connect
def no_names(*_, **__):
    raise AssertionError("the server asked for a name")
socket.getaddrinfo = no_names
from headwise.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


class ServerProcess:
    """`headwise serve` as a user starts it."""

    def __init__(
        self, *options: str, model: str = f"tiny={BUNDLE}", log: Path, before: str = ""
    ) -> None:
        self.log = log
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "OMP_NUM_THREADS": "1",
            "LC_ALL": "C.UTF-8",
        }
        command = [
            sys.executable,
            "-c",
            before + NO_NETWORK,
            "serve",
            model,
            "--port",
            "0",
            "--device",
            "cpu",
            *options,
        ]
        with log.open("wb") as writer:
            self.process = Python(
                command, stderr=writer, stdout=writer, env=environment, cwd=log.parent
            )
        self.port = 0

    def __enter__(self) -> Self:
        until = time.monotonic() + 120
        while True:
            assert time.monotonic() < until, self.log.read_text(encoding="utf-8")
            assert self.process.poll() is None, self.log.read_text(encoding="utf-8")
            found = re.search(r"http://127\.0\.0\.1:(\d+)", self.log.read_text(encoding="utf-8"))
            if found and not self.port:
                self.port = int(found[1])
            if self.port and self._is_ready():
                return self
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            return self.ask("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        connection = self.connect()
        try:
            return ask(connection, method, path, body, **headers)
        finally:
            connection.close()

    def metric(self, name: str) -> float:
        text = self.ask("GET", "/metrics")[1]
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in text.splitlines()
            if re.match(name + r"[{ ]", line)
        )

    def stop(self, *, seconds: float = 60) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, Any]:
    """Status and content on a connection that stays open."""
    content = (
        None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    )
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, content, {"Content-Type": "application/json", **given})
    reply = connection.getresponse()
    text = reply.read().decode()
    is_json = (reply.getheader("content-type") or "").startswith("application/json")
    return reply.status, json.loads(text) if is_json else text
