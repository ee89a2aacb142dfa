"""The outermost middleware: checks every request before its route sees it, and reads its body.

In this order: the size of the head, the Host header, path and method (`route_table.py`), key and
rate (`access_control.py`), content type, size of the body. The body is read here as a whole, within
a time limit; afterwards the connection is only watched for a disconnect. Every reply gets the same
security headers and is counted. A client that does not read its reply within the deadline is
disconnected. Tested: hosts, sizes with and without Content-Length, content types, slow bodies,
clients that do not read.
"""

import asyncio
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from starlette.routing import Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headwise.serving.http.access_control import AccessControl
from headwise.serving.http.cross_site import refuse_cross_site
from headwise.serving.http.errors import Refusal, refusal_reply
from headwise.serving.http.metrics import Metrics
from headwise.serving.http.route_table import JSON, RouteEntry, RouteTable
from headwise.serving.http.server_settings import ServerSettings

BODY_SECONDS = 10.0
ABORT_SECONDS = 1.0
"""After the deadline, so that a client that reads gets the 504 first."""
HEAD_BYTES = 16_384
HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{1,5})?", re.IGNORECASE)
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


class RequestGuard:
    """Checks, counts and completes every request."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        settings: ServerSettings,
        access: AccessControl,
        metrics: Metrics,
        routers: Sequence[Router],
    ) -> None:
        self.app, self.settings, self.access, self.metrics = app, settings, access, metrics
        self.routes = RouteTable(routers)
        is_public = settings.is_public
        self._names = {*settings.hosts, settings.host, *(() if is_public else LOOPBACK_NAMES)}
        self._any_name = "*" in self._names or (is_public and not settings.hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        start = time.monotonic()
        status = 499

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name.lower() for name, _ in message["headers"]}
                added = [pair for pair in HEADERS if pair[0] not in given]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        try:
            await self._check_and_answer(scope, receive, send_with_headers)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.count(route, status, time.monotonic() - start)

    async def _check_and_answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            headers = {name.lower(): value for name, value in scope["headers"]}
            self._check_head(scope)
            self._check_host(headers.get(b"host", b""))
            route = self.routes.find(scope["method"], scope["path"])
            if scope["method"] in ("POST", "PUT", "PATCH"):
                self.access.check_before_body(scope)
                receive = await self._read_body(route, headers, receive)
        except Refusal as refusal:
            await refusal_reply(scope["path"], refusal)(scope, receive, send)
            return
        except ConnectionResetError:
            return
        with self._abort_when_late(scope):
            await self.app(scope, receive, send)

    @contextmanager
    def _abort_when_late(self, scope: Scope) -> Iterator[None]:
        """Close the connection of a client that does not read its reply in time."""
        abort = scope.get("extensions", {}).get("headwise.abort")
        if abort is None:
            yield
            return
        timer = asyncio.get_running_loop().call_later(
            self.settings.deadline_seconds + ABORT_SECONDS, abort["call"]
        )
        try:
            yield
        finally:
            timer.cancel()

    def _check_head(self, scope: Scope) -> None:
        """`connection.py` only limits a head that arrives in several pieces."""
        headers = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        if headers + len(scope.get("raw_path") or b"") + len(scope["query_string"]) > HEAD_BYTES:
            raise Refusal(
                431,
                "large_head",
                en=(
                    f"the head of the request is larger than {HEAD_BYTES:,} bytes; send fewer "
                    "headers and a shorter address"
                ),
                zh=f"请求头超过 {HEAD_BYTES:,} 字节；请减少请求头、缩短地址",
            )

    def _check_host(self, given: bytes) -> None:
        """Refuse foreign host names: a page elsewhere may use one to reach this machine through a
        browser (DNS rebinding).
        """
        if not self._any_name and _name_of(given.decode("latin-1")) not in self._names:
            raise Refusal(
                400,
                "wrong_host",
                en="this server does not answer to that name; start it with --allow-host NAME",
                zh="此服务器不以该名称应答；请以 --allow-host NAME 启动",
            )

    async def _read_body(
        self, route: RouteEntry, headers: dict[bytes, bytes], receive: Receive
    ) -> Receive:
        """Check and read the body; the returned `receive` passes it on once."""
        kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower().decode("latin-1")
        if kind not in route.media_types:
            known = [f"`Content-Type: {one}`" for one in sorted(route.media_types)]
            form = (" or a form", "或表单") if len(known) > 1 else ("", "")
            raise Refusal(
                415,
                "not_json",
                en=f"the body must be JSON{form[0]}; send the header {' or '.join(known)}",
                zh=f"请求体必须是 JSON{form[1]}；请发送 {' 或 '.join(known)} 头",
            )
        if kind != JSON:
            refuse_cross_site(headers)
        declared = headers.get(b"content-length", b"0")
        if not declared.isdigit() or len(declared) > 12 or int(declared) > self.settings.body_bytes:
            raise self._too_large()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await self._collect(receive)
        except TimeoutError:
            raise Refusal(
                408,
                "slow_body",
                en="the body took too long to arrive; send it at once",
                zh="请求体到达太慢；请一次发送",
            ) from None
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def pass_on() -> Message:
            return messages.pop() if messages else await receive()

        return pass_on

    async def _collect(self, receive: Receive) -> bytes:
        chunks, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ConnectionResetError
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > self.settings.body_bytes:
                raise self._too_large()
            if not message.get("more_body", False):
                return b"".join(chunks)

    def _too_large(self) -> Refusal:
        return Refusal(
            413,
            "too_large",
            en=(
                f"the body is larger than {self.settings.body_bytes:,} bytes; send fewer or "
                "shorter texts"
            ),
            zh=f"请求体超过 {self.settings.body_bytes:,} 字节；请减少或缩短文本",
        )


def _name_of(host: str) -> str | None:
    """The name in `name`, `name:port` or `[::1]:port`; None for anything else."""
    found = HOST.fullmatch(host)
    return None if found is None else (found[1] or found[2]).lower()
