"""Handles one HTTP/1.1 connection: uvicorn's protocol with the parser httptools, and limits on
every wait.

    event                           what the server does
    no complete head in 10 s        closes the connection (it is idle, or sends byte by byte)
    too many connections            drops one that waits for its client; if all are being answered,
                                    answers the new one with 503 (`connection_limit.py`)
    head too large, tiny chunks     answers 431 or 400 and closes
    more than 16 pipelined          answers the 16 in order, the last with `Connection: close`; the
    requests                        client must repeat the rest
    bad head after good requests    answers the good ones and closes (RFC 9112, 9.3.2, 9.6)
    bad body after good requests    answers the good ones, then the bad one with 400, and closes
    ambiguous framing               answers 400 and closes: Content-Length beside chunks, chunks in
                                    HTTP/1.0, two Host headers (RFC 9112, 3.2, 6.1)
    Upgrade                         ignores it (`request_parser.py`)
    CONNECT                         answers 501 and closes
    client closed its sending side  still sends the reply, unless the client is gone altogether

The application gets a function that aborts the connection of a client that does not read
(`scope["extensions"]["headwise.abort"]`). Tested: real sockets.
"""

import asyncio
import json
import socket
import sys
from collections.abc import Callable
from typing import Any
from weakref import ref

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from headwise.serving.http.connection_limit import ConnectionLimit
from headwise.serving.http.errors import Refusal, refusal_reply
from headwise.serving.http.request_guard import HEAD_BYTES
from headwise.serving.http.request_parser import RequestParser
from headwise.serving.http.server_settings import is_loopback

HEAD_SECONDS = 10.0
LINGER_SECONDS = 2.0
"""After a refusal the client may still send for this long, and read why it was refused."""
CLIENT_CHECK_SECONDS = 0.1
"""How often a client that closed its sending side is checked."""
MAX_CHUNKS = 4_096
"""Chunks and trailers of a body: each costs as much as a kilobyte."""
MAX_PIPELINED = 16
TCP_CLOSED = 7
"""The TCP state that Linux reports after the other side has reset the connection."""

_LARGE_HEAD = Refusal(
    431,
    "large_head",
    en="the head of the request is too large; send fewer headers",
    zh="请求头过大；请减少",
)
_TWO_LENGTHS = Refusal(
    400,
    "bad_framing",
    en="the request has both Content-Length and Transfer-Encoding; send one of them",
    zh="请求同时有 Content-Length 与 Transfer-Encoding；请只发送其中一个",
)
_BAD_TRANSFER_ENCODING = Refusal(
    400,
    "bad_framing",
    en="Transfer-Encoding must be `chunked`, once, and without Content-Length (HTTP/1.1)",
    zh="Transfer-Encoding 只能是 `chunked`，只出现一次，且不与 Content-Length 并用（HTTP/1.1）",
)
_BAD_HOST = Refusal(
    400, "bad_host", en="exactly one Host header is required", zh="必须恰有一个 Host 头"
)
_NO_TUNNEL = Refusal(
    501,
    "no_tunnel",
    en="this server is no proxy; it takes no CONNECT",
    zh="此服务器不是代理；不接受 CONNECT",
)
_TOO_MANY = Refusal(
    400,
    "too_many",
    en="too many requests at once on one connection",
    zh="一个连接上同时请求过多",
)
_MANY_CHUNKS = Refusal(
    400,
    "many_chunks",
    en=f"the body has more than {MAX_CHUNKS:,} chunks; send larger ones, or a Content-Length",
    zh=f"请求体超过 {MAX_CHUNKS:,} 个分块；请用更大的分块，或给出 Content-Length",
)
_NOT_HTTP = Refusal(400, "not_http", en="this is not HTTP/1.1", zh="这不是 HTTP/1.1")
_FULL = Refusal(
    503,
    "full",
    en="too many connections; try again soon",
    zh="连接过多；请稍后再试",
    retry_after=1,
)


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with limits; `with_limit` makes the class that a server uses."""

    limit: ConnectionLimit

    @classmethod
    def with_limit(cls, limit: ConnectionLimit) -> "type[Connection]":
        return type("BoundedConnection", (cls,), {"limit": limit})

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.parser: RequestParser = RequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._timer: asyncio.TimerHandle | None = None
        self._client_check: asyncio.TimerHandle | None = None
        self.address: str | None = None
        self._in_head = self._is_closing = False
        self._head_bytes = self._num_chunks = 0
        self._refusal = _NOT_HTTP
        app = self.app

        async def answer(scope: Any, receive: Any, send: Any) -> None:
            scope["extensions"] = {"headwise.abort": {"call": self.transport.abort}}
            await app(scope, receive, send)

        self.app = answer

    @property
    def is_idle(self) -> bool:
        """No request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def awaits_client(self) -> bool:
        """The server waits for a head or for the rest of a body."""
        return self.is_idle or self.cycle.more_body

    # Events of the transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._abort_after(HEAD_SECONDS)
        if self.client is not None and not is_loopback(self.client[0]):
            self.address = self.client[0]
        if not self.limit.add(self):
            self.app = refuse_connection
            self.loop.call_later(LINGER_SECONDS, transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.limit.remove(self)
        self._cancel_timer()
        self._unset_keepalive_if_required()
        if self._client_check is not None:
            self._client_check.cancel()

    def data_received(self, data: bytes) -> None:
        if self._is_closing:
            return
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if (
                self._head_bytes > HEAD_BYTES
                and not self._is_closing
                and not self.transport.is_closing()
            ):
                self._refusal = _LARGE_HEAD
                self.send_400_response("")
        if self.is_idle or self.transport.is_closing():
            self._abort_after(HEAD_SECONDS)
        else:
            self._cancel_timer()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """A client that closed its sending side still gets its reply.

        A client that is gone altogether looks the same until something is sent to it, so `100
        Continue` is sent and the state of the socket is checked.
        """
        if self.awaits_client or sys.platform != "linux":
            return None
        self.cycle.keep_alive = False
        # HTTP/1.0 has no `100 Continue`: whether the client is gone shows with the reply.
        if self.scope["http_version"] != "1.1":
            return True
        self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._client_check = self.loop.call_later(CLIENT_CHECK_SECONDS, self._check_client)
        return True

    def _check_client(self) -> None:
        found = self.transport.get_extra_info("socket")
        if found is None or found.fileno() < 0:
            return
        if found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == TCP_CLOSED:
            self.transport.abort()
        else:
            self._client_check = self.loop.call_later(CLIENT_CHECK_SECONDS, self._check_client)

    # Events of the parser

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_bytes, self._num_chunks = True, 0, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:
            super().on_header(name, value)
        else:  # a trailer: counted, otherwise ignored
            self.on_chunk_header()

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self.parser.get_method() == b"CONNECT":
            self._refuse(_NO_TUNNEL)
        self._check_framing()
        if self.parser.is_upgrade:
            return
        if len(self.pipeline) >= MAX_PIPELINED:
            self._refuse(_TOO_MANY)
        super().on_headers_complete()
        transport: Any = ReplyTransport(self.transport, self.cycle, self._close_after)
        self.cycle.transport = transport

    def on_message_complete(self) -> None:
        if self.parser.is_upgrade:
            return
        super().on_message_complete()
        if not self.is_idle:
            self.limit.mark_busy(self)

    def on_chunk_header(self) -> None:
        self._num_chunks += 1
        if self._num_chunks > MAX_CHUNKS:
            self._refuse(_MANY_CHUNKS)

    def _check_framing(self) -> None:
        names = [name for name, _ in self.headers]
        version = self.parser.get_http_version()
        if b"transfer-encoding" in names:
            codings = [
                value.strip().lower()
                for name, value in self.headers
                if name == b"transfer-encoding"
            ]
            if b"content-length" in names or version == "1.0" or codings != [b"chunked"]:
                self._refuse(_BAD_TRANSFER_ENCODING)
        if names.count(b"host") > 1 or (version == "1.1" and b"host" not in names):
            self._refuse(_BAD_HOST)

    def _refuse(self, refusal: Refusal) -> None:
        """Stop the parser; uvicorn then calls `send_400_response`."""
        self._refusal = refusal
        raise ValueError(refusal.code)

    # Replies and the end of the connection

    def on_response_complete(self) -> None:
        if (
            self.is_idle
            and (self._is_closing or self.cycle.more_body)
            and not self.transport.is_closing()
        ):
            self._close_gracefully()
            return
        super().on_response_complete()
        if self.is_idle:
            self.limit.mark_idle(self)
        if self.transport.is_closing():
            self._abort_after(HEAD_SECONDS)

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """Answer a head or body that cannot be parsed, and close.

        Complete requests before it are answered first. A bad head after them gets no reply; a bad
        body gets one. In the middle of a reply the connection can only be aborted.
        """
        if not self.is_idle and not self.cycle.more_body:
            self._is_closing = True
            self.cycle.keep_alive = False
            return
        refusal = _TWO_LENGTHS if self.parser.has_two_lengths else self._refusal
        if self.pipeline and self.pipeline[0][0] is self.cycle:
            self._is_closing = True
            self.cycle.keep_alive = False
            self.pipeline[0] = (self.cycle, refusal_reply("", refusal))  # type: ignore[assignment]
            return
        is_late = not self.is_idle and self.cycle.response_started
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if is_late:
            self.transport.abort()
            return
        error = {"code": refusal.code, "message": refusal.en, "message_zh": refusal.zh}
        content = json.dumps({"error": error}, ensure_ascii=False).encode()
        head = (
            b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
            % len(content)
        )
        self.transport.write(STATUS_LINE[refusal.status] + head + content)
        self._close_gracefully()

    def _close_after(self, cycle: RequestResponseCycle) -> None:
        """Close after the last reply; gracefully if the client is still sending."""
        if self._is_closing or cycle.more_body:
            self._close_gracefully()
        else:
            self.transport.close()

    def _close_gracefully(self) -> None:
        """Close the sending side and discard input for a while: closing at once would destroy the
        reply to a client that is still sending (RFC 9112, 9.6).
        """
        self._is_closing = True
        self._unset_keepalive_if_required()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._cancel_timer()
        self._abort_after(LINGER_SECONDS)

    def drop(self) -> None:
        """Abort at once, without a reply."""
        self.connections.discard(self)
        self.transport.abort()

    def _abort_after(self, seconds: float) -> None:
        """Start the timer unless it runs: more bytes do not buy more time."""
        if self._timer is None:
            self._timer = self.loop.call_later(seconds, self.transport.abort)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class ReplyTransport:
    """The transport as a reply sees it: the connection decides how it is closed.

    It refers to the reply weakly, because the reply refers to it.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        cycle: RequestResponseCycle,
        close_after: Callable[[RequestResponseCycle], None],
    ) -> None:
        self._transport, self._cycle, self._close_after = transport, ref(cycle), close_after

    def close(self) -> None:
        cycle = self._cycle()
        if cycle is None:
            self._transport.close()
        else:
            self._close_after(cycle)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


async def refuse_connection(scope: Any, receive: Any, send: Any) -> None:
    """The application of a connection above the limit: 503."""
    reply = refusal_reply(scope["path"], _FULL)
    reply.headers["connection"] = "close"
    await reply(scope, receive, send)
