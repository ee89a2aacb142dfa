"""One connection: how long it may keep the server waiting, how many there may be, and how it is
ended.

    no whole head of a request in 10 s          closed (an idle connection, one that drips, a body nobody waits for any more)
    too many connections                        the one that has kept the server waiting longest makes room, first of those that were
                                                never answered; if all are being answered, the newcomer is told 503 and when to return
    a head too large, many tiny chunks          431, 400, closed
    more than 16 requests behind one that is    those are answered in order, the last with `Connection: close`; the client repeats the rest.
    being answered, or one that cannot be read  The same for whole requests before one that cannot be read (RFC 9112, 9.3.2, 9.6)
    framing that two readers could read in      400, closed: a length beside chunks, chunks in HTTP/1.0, two hosts (RFC 9112, 3.2, 6.1)
    two ways
    an offer of another protocol (Upgrade)      ignored (`plain_parser.py`); a tunnel (CONNECT): 501, closed
    the client has ended its side               it gets its reply, unless it is gone altogether

The protocol is uvicorn's with the parser httptools; what is here are bounds that no server for
Python has. The application gets the means to cut off a client that does not read
(`scope["extensions"]["headwise.cut"]`). Tested: real sockets.
"""

import asyncio
import json
import socket
import sys
from collections.abc import Callable
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from headwise.serving.http.connection_limit import Slots
from headwise.serving.http.errors import Refusal, reply_to
from headwise.serving.http.request_guard import HEAD_BYTES
from headwise.serving.http.request_parser import PlainParser
from headwise.serving.schemas.limits import is_loopback

HEAD_SECONDS = 10.0
LINGER_SECONDS = 2.0
"""A client that is refused gets so long to send what it began and to read why."""
GONE_SECONDS = 0.1
"""How often a client that has ended its side is looked for."""
MAX_CHUNKS = 4_096
"""Chunks and trailers of a body: each costs as much as a kilobyte."""
MAX_PIPELINED = 16
TCP_CLOSED = 7
"""The state in which Linux has a connection after the other side has said that nobody is there."""


class Connection(HttpToolsProtocol):
    """uvicorn's, with an end to every wait; `bounded_by` makes the class that a server uses."""

    slots: Slots

    @classmethod
    def bounded_by(cls, slots: Slots) -> "type[Connection]":
        return type("BoundedConnection", (cls,), {"slots": slots})

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.parser: PlainParser = PlainParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._late: asyncio.TimerHandle | None = None
        self._looking: asyncio.TimerHandle | None = None
        self.address: str | None = None
        self._in_head = self._is_ending = False
        self._head_bytes = self._num_chunks = 0
        self._why = ("not_http", 400, "this is not HTTP/1.1", "这不是 HTTP/1.1")
        app = self.app

        async def answer(scope: Any, receive: Any, send: Any) -> None:
            scope["extensions"] = {"headwise.cut": {"call": self.transport.abort}}
            await app(scope, receive, send)

        self.app = answer

    @property
    def is_idle(self) -> bool:
        """Nothing is being answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def waits_for_its_client(self) -> bool:
        """For a head or for the rest of a body."""
        return self.is_idle or self.cycle.more_body

    # The life of a connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect(HEAD_SECONDS)
        if self.client is not None and not is_loopback(self.client[0]):
            self.address = self.client[0]
        if not self.slots.enter(self):
            self.app = refuse_surplus
            self.loop.call_later(LINGER_SECONDS, transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.slots.leave(self)
        self._expect_nothing()
        self._unset_keepalive_if_required()
        if self._looking is not None:
            self._looking.cancel()

    def data_received(self, data: bytes) -> None:
        if self._is_ending:
            return
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if (
                self._head_bytes > HEAD_BYTES
                and not self._is_ending
                and not self.transport.is_closing()
            ):
                self._why = _LARGE_HEAD
                self.send_400_response("")
        if self.is_idle or self.transport.is_closing():
            self._expect(HEAD_SECONDS)
        else:
            self._expect_nothing()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Half a connection is enough for a reply; but a client that is gone looks the same until
        something is sent to it.
        """
        if self.waits_for_its_client or sys.platform != "linux":
            return None
        self.cycle.keep_alive = False
        if (
            self.scope["http_version"] != "1.1"
        ):  # it knows no `100 Continue`: whether it is gone shows with the reply
            return True
        self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._looking = self.loop.call_later(GONE_SECONDS, self._look_for_it)
        return True

    def _look_for_it(self) -> None:
        found = self.transport.get_extra_info("socket")
        if found is None or found.fileno() < 0:
            return
        if found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == TCP_CLOSED:
            self.transport.abort()
        else:
            self._looking = self.loop.call_later(GONE_SECONDS, self._look_for_it)

    # What the parser tells

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_bytes, self._num_chunks = True, 0, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:
            super().on_header(name, value)
        else:  # a trailer: nobody asks for one
            self.on_chunk_header()

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self.parser.get_method() == b"CONNECT":
            self._refuse(
                "no_tunnel",
                501,
                "this server is no proxy; it takes no CONNECT",
                "此服务器不是代理；不接受 CONNECT",
            )
        self._check_framing()
        if self.parser.is_offered:
            return
        if len(self.pipeline) >= MAX_PIPELINED:
            self._refuse(
                "too_many",
                400,
                "too many requests at once on one connection",
                "一个连接上同时请求过多",
            )
        super().on_headers_complete()
        cycle = self.cycle
        cycle.transport = ClosedByUs(self.transport, lambda: self._close_after(cycle))  # type: ignore[assignment]

    def on_message_complete(self) -> None:
        if self.parser.is_offered:
            return
        super().on_message_complete()
        if not self.is_idle:
            self.slots.work(self)

    def on_chunk_header(self) -> None:
        self._num_chunks += 1
        if self._num_chunks > MAX_CHUNKS:
            en = f"the body has more than {MAX_CHUNKS:,} chunks; send larger ones, or a Content-Length"
            self._refuse(
                "many_chunks",
                400,
                en,
                f"请求体超过 {MAX_CHUNKS:,} 个分块；请用更大的分块，或给出 Content-Length",
            )

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
                en = "Transfer-Encoding must be `chunked`, once, and without Content-Length (HTTP/1.1)"
                zh = "Transfer-Encoding 只能是 `chunked`，只出现一次，且不与 Content-Length 并用（HTTP/1.1）"
                self._refuse("bad_framing", 400, en, zh)
        if names.count(b"host") > 1 or (version == "1.1" and b"host" not in names):
            self._refuse(
                "bad_host", 400, "exactly one Host header is required", "必须恰有一个 Host 头"
            )

    def _refuse(self, code: str, status: int, en: str, zh: str) -> None:
        """Ends the parser's work; what it raises becomes `send_400_response`."""
        self._why = (code, status, en, zh)
        raise ValueError(code)

    # How it is ended

    def on_response_complete(self) -> None:
        if (
            self.is_idle
            and (self._is_ending or self.cycle.more_body)
            and not self.transport.is_closing()
        ):
            self._end_slowly()
            return
        super().on_response_complete()
        if self.is_idle:
            self.slots.wait(self)
        if self.transport.is_closing():
            self._expect(HEAD_SECONDS)

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """To a head or body that cannot be read. Whole requests before it are answered, and nothing
        is said of it; in the middle of a reply to half a request nothing can be said any more."""
        if not self.is_idle and not self.cycle.more_body:
            self._is_ending = True
            self.cycle.keep_alive = False
            return
        is_late = not self.is_idle and self.cycle.response_started
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if is_late or self.pipeline:
            self.transport.abort()
            return
        code, status, en, zh = _TWO_LENGTHS if self.parser.has_two_lengths else self._why
        error = {"error": {"code": code, "message": en, "message_zh": zh}}
        content = json.dumps(error, ensure_ascii=False).encode()
        head = (
            b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
            % len(content)
        )
        self.transport.write(STATUS_LINE[status] + head + content)
        self._end_slowly()

    def _close_after(self, cycle: RequestResponseCycle) -> None:
        """As uvicorn does after a last reply, unless something is still being sent to us."""
        if self._is_ending or cycle.more_body:
            self._end_slowly()
        else:
            self.transport.close()

    def _end_slowly(self) -> None:
        """Nothing more is read in earnest, but thrown away for a while: closing at once would take
        the reply from a client that is still sending (RFC 9112, 9.6)."""
        self._is_ending = True
        self._unset_keepalive_if_required()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._expect_nothing()
        self._expect(LINGER_SECONDS)

    def cut(self) -> None:
        """Without a word, and at once."""
        self.connections.discard(self)
        self.transport.abort()

    def _expect(self, seconds: float) -> None:
        """A whole head, or the end, soon; more bytes do not buy more time."""
        if self._late is None:
            self._late = self.loop.call_later(seconds, self.transport.abort)

    def _expect_nothing(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class ClosedByUs:
    """A transport as a reply sees it: how it is closed is the connection's to say."""

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self._transport, self.close = transport, close

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


_LARGE_HEAD = (
    "large_head",
    431,
    "the head of the request is too large; send fewer headers",
    "请求头过大；请减少",
)

_TWO_LENGTHS = (
    "bad_framing",
    400,
    "the request has both Content-Length and Transfer-Encoding; send one of them",
    "请求同时有 Content-Length 与 Transfer-Encoding；请只发送其中一个",
)


async def refuse_surplus(scope: Any, receive: Any, send: Any) -> None:
    """For a connection that came when all others were being answered."""
    refusal = Refusal(
        503,
        "full",
        en="too many connections; try again soon",
        zh="连接过多；请稍后再试",
        retry_after=1,
    )
    reply = reply_to(scope["path"], refusal)
    reply.headers["connection"] = "close"
    await reply(scope, receive, send)
