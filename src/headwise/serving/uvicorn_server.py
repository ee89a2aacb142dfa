"""The server process: accepts connections, runs the application in uvicorn, and stops on a signal.

On SIGTERM or SIGINT the server refuses new work (503, also from `/readyz`), finishes what it has
accepted, and exits, at the latest after the deadline of a request and a grace period. A second
signal exits at once. Connections are accepted only if the limit allows
(`http/connection_limit.py`); further ones wait in the backlog of the socket, where they need no
open file. asyncio alone would accept all of them and then have to reset some. Tested: a real
process under load and a signal; a client that does not read, a thread that hangs; 64 open files,
200 clients.
"""

import asyncio
import gc
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FrameType
from typing import NoReturn

import uvicorn
from fastapi import FastAPI

from headwise.errors import UsageError
from headwise.language import say
from headwise.serving.app import create_app
from headwise.serving.http.api_keys import check_keys_given
from headwise.serving.http.connection import Connection
from headwise.serving.http.connection_limit import ConnectionLimit
from headwise.serving.http.log_rate_limit import limit_repeated_lines
from headwise.serving.http.open_file_limit import max_connections
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.server import Server
from headwise.serving.work.loaded_models import LoadedModel

KEEP_ALIVE_SECONDS = 15
BACKLOG = 2_048
GRACE_SECONDS = 3.0
"""After the deadline of the last request, for connections and threads to end."""
ACCEPT_RETRY_SECONDS = 0.01
ACCEPTED_AT_ONCE = 4
"""Connections accepted in one turn of the event loop."""

logger = logging.getLogger(__name__)


class UvicornServer(uvicorn.Server):
    """uvicorn with an accept loop that respects the connection limit."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup([])
        kind = self.config.http_protocol_class
        assert issubclass(kind, Connection)
        self._kind = kind
        self._accepting = [
            asyncio.ensure_future(self._accept(one, kind.limit)) for one in sockets or ()
        ]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await super().shutdown(sockets)

    async def _accept(self, listening: socket.socket, limit: ConnectionLimit) -> None:
        listening.settimeout(0)
        loop = asyncio.get_running_loop()
        while True:
            while not limit.has_room():
                await asyncio.sleep(ACCEPT_RETRY_SECONDS)
            try:
                accepted = [(await loop.sock_accept(listening))[0]]
            except OSError:  # no open files left for the moment, or the client is gone already
                await asyncio.sleep(ACCEPT_RETRY_SECONDS)
                continue
            while len(accepted) < min(ACCEPTED_AT_ONCE, limit.num_free):
                try:
                    accepted.append(listening.accept()[0])
                except OSError:  # the backlog is empty
                    break
            connecting = [
                loop.connect_accepted_socket(self._make_connection, one) for one in accepted
            ]
            await asyncio.gather(*connecting, return_exceptions=True)

    def _make_connection(self) -> Connection:
        return self._kind(self.config, self.server_state, self.lifespan.state)


class DrainingServer(UvicornServer):
    """On a signal it answers 503 while it finishes its work; uvicorn would stop accepting."""

    def __init__(self, config: uvicorn.Config, server: Server) -> None:
        super().__init__(config)
        self._server = server
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopping = threading.Event()
        self._status = 0

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._server.on_failure = lambda: setattr(self, "should_exit", True)
        # A separate thread, started beforehand: it still runs when everything else hangs, and the
        # signal handler only has to set an event.
        threading.Thread(target=self._exit_when_late, name="headwise-exit", daemon=True).start()
        await super().serve(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._status or self._loop is None:
            self._exit_at_once(128 + sig)
        self._status = 128 + sig
        self._server.is_draining = True
        self._is_stopping.set()
        self._loop.call_soon_threadsafe(lambda: asyncio.ensure_future(self._drain(sig)))

    def _exit_when_late(self) -> None:
        self._is_stopping.wait()
        threading.Event().wait(self._server.settings.deadline_seconds + GRACE_SECONDS)
        logger.warning(
            say(
                "some work did not end in time and is given up (a client that does not read, or a "
                "computation that hangs)",
                "有些工作未能按时结束，已放弃（客户端不读取，或计算停滞）",
            )
        )
        self._exit_at_once(self._status)

    def _exit_at_once(self, status: int) -> NoReturn:
        """Exit without cleaning up: that is what may hang."""
        if self._server.demo_training is not None:
            self._server.demo_training.interrupt()
        # A signal may arrive in the middle of a write.
        with suppress(OSError, RuntimeError, ValueError):
            sys.stderr.flush()
        os._exit(status)

    async def _drain(self, sig: int) -> None:
        until = asyncio.get_running_loop().time() + self._server.settings.deadline_seconds
        while self._server.num_accepted and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.05)
        super().handle_exit(sig, None)


def serve(
    models: Mapping[str, LoadedModel],
    settings: ServerSettings,
    *,
    announce: Callable[[str], None],
    opened: Callable[[str], None] | None = None,
    use_processes: bool = False,
) -> None:
    """Serve until a signal arrives.

    Once the socket is open, `opened` gets the address, or `announce` a line that names it.
    `use_processes` as for `create_app`.
    """
    check_keys_given(settings)
    app = create_app(models, settings, use_processes=use_processes)
    config = configure(app)
    listening = open_socket(settings)
    host, port = listening.getsockname()[:2]
    address = f"[{host}]" if ":" in host else host
    names = ", ".join(models)
    if opened is None:
        announce(
            say(
                f"serving {names} at http://{address}:{port}",
                f"正在提供 {names}：http://{address}:{port}",
            )
        )
    else:
        opened(f"http://{address}:{port}/")
    # The loaded models stay: a garbage collection that scanned them held up the event loop for 150
    # ms, every few hundred requests.
    gc.freeze()
    try:
        with limit_repeated_lines():
            DrainingServer(config, app.state.server).run(sockets=[listening])
    finally:
        gc.unfreeze()
    if app.state.server.failure is not None:
        raise app.state.server.failure


def configure(app: FastAPI) -> uvicorn.Config:
    """uvicorn with limits on every wait and every number."""
    return uvicorn.Config(
        app,
        http=Connection.with_limit(ConnectionLimit(max_connections(), clock=time.monotonic)),
        ws="none",
        # uvloop, which uvicorn prefers where it is installed, cannot pass open files to a process.
        loop="asyncio",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )


def open_socket(settings: ServerSettings) -> socket.socket:
    """Bind before the address is announced, so that the announced port is the real one."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # IPPROTO_TCP must be named: asyncio sets TCP_NODELAY only on such sockets. Without it the body
    # of a reply waits 40 ms for the client to acknowledge its head.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((settings.host, settings.port))
    except OSError as error:
        found.close()
        raise UsageError(
            f"{settings.host} port {settings.port} cannot be listened on ({error.strerror}); give "
            "another --port or --host",
            f"无法监听 {settings.host} 端口 {settings.port}（{error.strerror}）；请换 --port 或 "
            "--host",
        ) from None
    found.listen(BACKLOG)
    return found
