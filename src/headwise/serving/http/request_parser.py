"""A parser of requests that ignores offers of another protocol (`Upgrade: h2c`), as RFC 9110, 7.8
allows.

httptools stops at such a request: it takes all that follows the head for the other protocol, its
body too. Here the head is read once more without the offer, and what follows is framed as for any
other request. While the first reading lasts, `is_offered` is true and nothing is to be answered.
Tested: bodies and pipelined requests behind offers, in pieces of every size.
"""

from typing import Any, Protocol

import httptools


class Told(Protocol):
    """What the parser has told so far of the request at hand."""

    url: bytes
    headers: list[tuple[bytes, bytes]]


class PlainParser(httptools.HttpRequestParser):
    """As httptools' own, but it never stops at an offer."""

    def __init__(self, told: Told) -> None:
        super().__init__(told)
        self._told = told
        self.has_two_lengths = False
        """It gave up at a request with both Content-Length and Transfer-Encoding."""

    @property
    def is_offered(self) -> bool:
        """The request at hand is going to be read once more."""
        return bool(self.should_upgrade())

    def feed_data(self, data: Any) -> None:
        while data:
            try:
                super().feed_data(data)
                return
            except httptools.HttpParserUpgrade as offered:
                data = self._head() + data[offered.args[0] :]
            except httptools.HttpParserError as error:
                self.has_two_lengths = "can't be present with" in str(error)
                raise

    def _head(self) -> bytes:
        """Of the request at hand, without its offer."""
        first = b"%s %s HTTP/%s\r\n" % (
            self.get_method(),
            self._told.url,
            self.get_http_version().encode(),
        )
        lines = [
            name + b": " + value + b"\r\n"
            for name, value in self._told.headers
            if name != b"upgrade"
        ]
        return first + b"".join(lines) + b"\r\n"
