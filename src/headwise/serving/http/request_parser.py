"""Parses requests with httptools, but ignores requests to switch protocols (`Upgrade: h2c`).

RFC 9110, section 7.8, allows a server to ignore them. httptools stops at such a request and treats
everything after its head as the other protocol. This parser feeds the head to httptools once more
without the `Upgrade` header, so that the body and later requests are framed as usual. While
`is_upgrade` is true, the head is going to be parsed again and must not be answered. Tested: bodies
and pipelined requests after an upgrade request, in pieces of every size.
"""

from typing import Any, Protocol

import httptools


class ParsedHead(Protocol):
    """What the parser has reported of the current request."""

    url: bytes
    headers: list[tuple[bytes, bytes]]


class RequestParser(httptools.HttpRequestParser):
    """httptools' parser, which never stops at an upgrade request."""

    def __init__(self, head: ParsedHead) -> None:
        super().__init__(head)
        self._head = head
        self.has_two_lengths = False
        """Parsing failed: the request has both Content-Length and Transfer-Encoding."""

    @property
    def is_upgrade(self) -> bool:
        """The current head asks for another protocol and is going to be parsed again."""
        return bool(self.should_upgrade())

    def feed_data(self, data: Any) -> None:
        while data:
            try:
                super().feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                data = self._head_without_upgrade() + data[upgrade.args[0] :]
            except httptools.HttpParserError as error:
                self.has_two_lengths = "can't be present with" in str(error)
                raise

    def _head_without_upgrade(self) -> bytes:
        first = b"%s %s HTTP/%s\r\n" % (
            self.get_method(),
            self._head.url,
            self.get_http_version().encode(),
        )
        lines = [
            name + b": " + value + b"\r\n"
            for name, value in self._head.headers
            if name != b"upgrade"
        ]
        return first + b"".join(lines) + b"\r\n"
