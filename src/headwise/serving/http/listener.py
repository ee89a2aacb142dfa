"""Connections are accepted while there is a place for them; more wait in the system's line, where
they cost no open file.

asyncio accepts whatever comes: beyond the open files that a process may have, connections could
only be cut off, and their clients saw a reset. Who is accepted beyond the bound of `slots.py` is
told 503 and closed, which gives the place to the next in line. Tested: a real process with 64 files
and 200 clients.
"""

import asyncio
import socket

import uvicorn

from headwise.serving.http.connection import Connection
from headwise.serving.http.connection_limit import Slots

LOOK_SECONDS = 0.01
ACCEPTED_AT_ONCE = 4
"""In one turn of the event loop."""


class AcceptingServer(uvicorn.Server):
    """uvicorn's, on sockets that are given to it, and with a line before its door."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup([])
        kind = self.config.http_protocol_class
        assert issubclass(kind, Connection)
        self._kind = kind
        self._accepting = [
            asyncio.ensure_future(self._accept(one, kind.slots)) for one in sockets or ()
        ]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await super().shutdown(sockets)

    async def _accept(self, listening: socket.socket, slots: Slots) -> None:
        listening.settimeout(0)
        loop = asyncio.get_running_loop()
        while True:
            while not slots.has_place():
                await asyncio.sleep(LOOK_SECONDS)
            try:
                accepted = [(await loop.sock_accept(listening))[0]]
            except OSError:  # no open files left for the moment, or the client is gone already
                await asyncio.sleep(LOOK_SECONDS)
                continue
            while len(accepted) < min(ACCEPTED_AT_ONCE, slots.num_places):
                try:
                    accepted.append(listening.accept()[0])
                except OSError:  # nobody else is in line
                    break
            connecting = [
                loop.connect_accepted_socket(self._make_connection, one) for one in accepted
            ]
            await asyncio.gather(*connecting, return_exceptions=True)

    def _make_connection(self) -> Connection:
        return self._kind(self.config, self.server_state, self.lifespan.state)
