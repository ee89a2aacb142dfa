"""Access control: checks the API key and the rate limit before the body of a request is read.

    the headers hold a known key          the request counts for the key
    the key is missing or unknown         401 or 403, and the request counts for the client address
    the server requires no keys           the request counts for the client address

So refused requests are limited, too.

LibreTranslate's clients send their key in the body. On LibreTranslate's routes a request without a
key in its headers is therefore let through as far as its body, and counts for the client address.
If the body holds a known key, the request counts for the key instead; if not, it gets 401 or 403
and still counts for the address. Tested through the routes.
"""

from typing import Any

from starlette.types import Scope

from headwise.serving.http.api_keys import KeyRing
from headwise.serving.http.errors import Refusal
from headwise.serving.http.rate_limit import RateLimit

BEARER = b"bearer "
KEY_IN_BODY = frozenset({"/translate", "/detect"})
"""Routes whose clients send their key in the body."""
CHARGED = "headwise.charged"
"""Key of the ASGI scope: the caller that this request was counted for."""


class AccessControl:
    """Decides who may call, and how often."""

    def __init__(self, keys: KeyRing, rate_limit: RateLimit) -> None:
        self._keys, self._rate_limit = keys, rate_limit

    def check(self, scope: Scope, *, key_in_body: str | None = None) -> None:
        """Refuse a request without a valid key, or above the rate limit."""
        caller = _client_address(scope)
        if self._keys:
            try:
                caller = "key " + self._keys.find(
                    _key_in_headers(scope) or key_in_body, in_body=scope["path"] in KEY_IN_BODY
                )
            except Refusal:
                self._charge(scope, caller)
                raise
        self._charge(scope, caller)

    def check_before_body(self, scope: Scope) -> None:
        """The same for a request whose body has not been read yet and may hold the key."""
        if self._keys and scope["path"] in KEY_IN_BODY and _key_in_headers(scope) is None:
            self._charge(scope, _client_address(scope))
        else:
            self.check(scope)

    def _charge(self, scope: Scope, caller: str) -> None:
        """Count the request for a caller, once; another caller it was counted for is refunded."""
        before = scope.get(CHARGED)
        if before == caller:
            return
        self._rate_limit.take(caller)
        if before is not None:
            self._rate_limit.give_back(before)
        scope[CHARGED] = caller


def _client_address(scope: Scope) -> str:
    client: Any = scope.get("client")
    return "" if client is None else str(client[0])


def _key_in_headers(scope: Scope) -> str | None:
    """The key in the headers. Keys in URLs are ignored, because logs keep URLs."""
    headers = dict(scope["headers"])
    given: bytes = headers.get(b"authorization", b"")
    found = given[len(BEARER) :] if given.lower().startswith(BEARER) else headers.get(b"x-api-key")
    return found.decode("latin-1").strip() or None if found else None
