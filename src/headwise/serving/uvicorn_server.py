"""The process: uvicorn around the application, with its own limits set, and a stop that loses
nothing.

On SIGTERM or SIGINT the server stops accepting work (503, `/readyz` says so), finishes what it
accepted, and leaves: within the deadline of a request and a grace, whoever still reads or computes.
A second signal ends it at once. Tested: a real process under load and a signal; with a client that
does not read and a thread that does not come back.
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
from headwise.serving.http.connection import Connection
from headwise.serving.http.connection_limit import Slots
from headwise.serving.http.exposure import check_exposure
from headwise.serving.http.listener import AcceptingServer
from headwise.serving.http.log_rate_limit import few_log_lines
from headwise.serving.http.open_file_limit import allowed_connections
from headwise.serving.schemas.limits import ServerSettings
from headwise.serving.server import Server
from headwise.serving.work.loaded_models import LoadedModel

KEEP_ALIVE_SECONDS = 15
BACKLOG = 2_048
GRACE_SECONDS = 3.0
"""Beyond the deadline of the last request, for connections and threads to end."""

logger = logging.getLogger(__name__)


class DrainingServer(AcceptingServer):
    """uvicorn closes its door at once on a signal; here whoever knocks meanwhile is told 503."""

    def __init__(self, config: uvicorn.Config, server: Server) -> None:
        super().__init__(config)
        self._server = server
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_leaving = threading.Event()
        self._status = 0

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._server.on_failure = lambda: setattr(self, "should_exit", True)
        # A thread of its own, begun beforehand: whatever hangs, it does not, and a signal only has
        # to wake it.
        threading.Thread(target=self._see_to_the_end, name="headwise-leaving", daemon=True).start()
        await super().serve(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._status or self._loop is None:
            self._leave_at_once(128 + sig)
        self._status = 128 + sig
        self._server.is_draining = True
        self._is_leaving.set()
        self._loop.call_soon_threadsafe(lambda: asyncio.ensure_future(self._drain(sig)))

    def _see_to_the_end(self) -> None:
        self._is_leaving.wait()
        threading.Event().wait(self._server.settings.deadline_seconds + GRACE_SECONDS)
        logger.warning(
            say(
                "some work did not end in time and is given up (a client that does not read, or a "
                "computation that hangs)",
                "有些工作未能按时结束，已放弃（客户端不读取，或计算停滞）",
            )
        )
        self._leave_at_once(self._status)

    def _leave_at_once(self, status: int) -> NoReturn:
        """Without unwinding: that is what may hang."""
        if self._server.training is not None:
            self._server.training.interrupt()
        with suppress(
            OSError, RuntimeError, ValueError
        ):  # a signal may come in the middle of a line
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
    apart: bool = False,
) -> None:
    """Serve until a signal comes; `announce` says where, once the door is open, or `opened` is told
    the address alone. `apart` as for `create_app`.
    """
    check_exposure(settings)
    app = create_app(models, settings, apart=apart)
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
    # What was loaded stays: looking through all of it for garbage held up the event loop for 150
    # ms, every few hundred requests.
    gc.freeze()
    try:
        with few_log_lines():
            DrainingServer(config, app.state.server).run(sockets=[listening])
    finally:
        gc.unfreeze()
    if app.state.server.failure is not None:
        raise app.state.server.failure


def configure(app: FastAPI) -> uvicorn.Config:
    """uvicorn, with every wait and every number bounded."""
    return uvicorn.Config(
        app,
        http=Connection.bounded_by(Slots(allowed_connections(), clock=time.monotonic)),
        ws="none",
        loop="asyncio",  # uvicorn would take uvloop where it is installed, which gives a new process no open files
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )


def open_socket(settings: ServerSettings) -> socket.socket:
    """Open before anything is said, so that the port announced is the port taken."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The protocol by its number: asyncio sends small writes at once (TCP_NODELAY) only on sockets
    # that name it. Without it the body of a reply waits 40 ms for the client to confirm its head.
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
