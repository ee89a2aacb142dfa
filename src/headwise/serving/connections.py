"""One connection: how long it may stay without asking anything, how many there may be, and how it is ended.

    no whole head of a request in 10 s    closed (an idle connection, one that drips, a body nobody waits for any more)
    too many connections                  the one that has been idle longest makes room
    a head that cannot be read            400, or 431 when it is too large

uvicorn bounds only the pause after a reply, and closing alone waits for a client that may never read: what is late is cut off.
The application gets the means to do so (`scope["extensions"]["headwise.cut"]`), and to be told when the client leaves
(`headwise.leave`). What is written in one turn of the loop, a head and a body, is sent as one. Tested: real sockets.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol
from uvicorn.server import ServerState

from headwise.serving.door import HEAD_BYTES
from headwise.serving.limits import is_loopback

HEAD_SECONDS = 10.0
MAX_CONNECTIONS = 512
"""Of this machine and all others; with what else is open below the 1,024 files that systems allow a process by default."""
MAX_CONNECTIONS_OF_ONE = 128
"""Of one other machine."""


class Gathered:
    """A transport that sends what is written in one turn of the event loop at once."""

    def __init__(self, inner: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._inner, self._loop = inner, loop
        self._held: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self._send)
        self._held.append(data)

    def close(self) -> None:
        self._send()
        self._inner.close()

    def get_write_buffer_size(self) -> int:
        return self._inner.get_write_buffer_size() + sum(map(len, self._held))

    def _send(self) -> None:
        held, self._held = self._held, []
        if held and not self._inner.is_closing():
            self._inner.write(b"".join(held))


class Connection(H11Protocol):
    """uvicorn's, with an end to every wait."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._late: asyncio.TimerHandle | None = None
        self.idle_since = self.loop.time()
        self._on_leave: Callable[[], None] | None = None
        app = self.app

        async def answer(scope: Any, receive: Any, send: Any) -> None:
            scope["extensions"] = {
                "headwise.cut": {"call": self.transport.abort},
                "headwise.leave": {"call": self.when_left},
            }
            await app(scope, receive, send)

        self.app = answer

    @property
    def is_idle(self) -> bool:
        """Nothing is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(Gathered(transport, self.loop))  # type: ignore[arg-type]
        self._expect()
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._on_leave is not None:
            self._on_leave()
        self._expect_nothing()
        self._unset_keepalive_if_required()

    def when_left(self, call: Callable[[], None] | None) -> None:
        """What to call if the client leaves, or nothing any more. A task that listens would cost every request more."""
        self._on_leave = call
        if call is not None and self.cycle is not None and self.cycle.disconnected:
            call()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.is_idle or self.transport.is_closing():
            self._expect()
        else:
            self._expect_nothing()

    def on_response_complete(self) -> None:
        self.idle_since = self.loop.time()
        super().on_response_complete()
        if self.transport.is_closing():
            self._expect()

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """To a head that cannot be read; in the middle of a reply nothing can be said any more."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        is_large = len(self.conn.trailing_data[0]) > HEAD_BYTES
        status = 431 if is_large else 400
        error = {
            "code": "large_head" if is_large else "not_http",
            "message": "the head of the request is too large; send fewer headers"
            if is_large
            else "this is not HTTP/1.1",
            "message_zh": "请求头过大；请减少" if is_large else "这不是 HTTP/1.1",
        }
        headers = [("content-type", "application/json"), ("connection", "close")]
        for event in (
            h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status]),
            h11.Data(data=json.dumps({"error": error}, ensure_ascii=False).encode()),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _expect(self) -> None:
        """A whole head, soon; more bytes do not buy more time."""
        if self._late is None:
            self._late = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _expect_nothing(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _make_room(self) -> None:
        others = [one for one in self.connections if isinstance(one, Connection) and one is not self]
        mine = [one for one in others if one.client is not None and self.client and one.client[0] == self.client[0]]
        is_far = self.client is not None and not is_loopback(self.client[0])
        if is_far and len(mine) >= MAX_CONNECTIONS_OF_ONE:
            self._cut_longest_idle([*mine, self])  # itself, where all others are at work
        elif len(others) >= MAX_CONNECTIONS:
            self._cut_longest_idle(others)

    def _cut_longest_idle(self, among: "list[Connection]") -> None:
        idle = [one for one in among if one.is_idle]
        if idle:
            longest = min(idle, key=lambda one: one.idle_since)
            self.connections.discard(longest)
            longest.transport.abort()
