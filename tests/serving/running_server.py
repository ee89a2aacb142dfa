"""A server in a thread on a real socket, for tests of connections and framing."""

import asyncio
import http.client
import math
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

from fastapi import Request

from headwise.serving.api.translation_stream import AdmittedStream
from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.server import Server
from headwise.serving.uvicorn_server import UvicornServer, configure, open_socket
from headwise.serving.work.loaded_models import LoadedModel

POST = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


class RunningServer:
    """A server in a thread on a real socket, with a route that never stops sending."""

    def __init__(self, models: dict[str, LoadedModel], *, deadline_seconds: float = 30) -> None:
        settings = ServerSettings(port=0, deadline_seconds=deadline_seconds)
        app = create_app(models, settings)
        self.holds_back = threading.Event()
        """While it is set, nothing that was asked for slowly is answered."""
        self.state: Server = app.state.server

        async def endless() -> AdmittedStream:
            held = AsyncExitStack()
            await held.enter_async_context(self.state.queue_place("tiny", until=math.inf))
            return AdmittedStream(_shout(), held)

        async def slow() -> str:
            await asyncio.sleep(0.3)
            while self.holds_back.is_set():
                await asyncio.sleep(0.01)
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
        config.http.limit.max_connections = 7  # type: ignore[union-attr]
        self.server = UvicornServer(config)
        self.thread = threading.Thread(target=lambda: self.server.run(sockets=[self.listening]))
        self.thread.start()

    def connect(self, *, sent: bytes = b"") -> socket.socket:
        found = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        found.sendall(sent)
        return found

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(20)
        assert not self.thread.is_alive()

    def is_answering(self) -> bool:
        asking = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        asking.request("GET", "/healthz")
        status = asking.getresponse().status
        asking.close()
        return status == 200


async def _shout() -> AsyncIterator[str]:
    while True:
        yield "a" * 65_536
        await asyncio.sleep(0)


def read_all(connection: socket.socket) -> bytes:
    connection.settimeout(60)
    found = b""
    while more := connection.recv(65_536):
        found += more
    return found
