"""Who may ask, and how often: settled before a byte of a request's body is waited for.

    a key is asked for, and one in the headers is known    one of the key's requests a minute is taken
    it is missing or unknown                               401 or 403, and one of its address's requests a minute is taken
    no keys are asked for                                  one of its address's requests a minute is taken

So whoever is refused is slowed down like everybody else. LibreTranslate's clients put their key
into the body and know no other place: at their addresses a caller without a key in the headers is
let through to there, and one of its address's requests is taken; it is given back when the key in
the body is known. So a body that is never read to a key (not JSON, a field missing) is paid for.
Requests without a body are checked by the routes they are for. Tested through the addresses.
"""

from typing import Any

from fastapi import Request
from starlette.types import Scope

from headwise.serving.http.errors import Refusal
from headwise.serving.server import Server

BEARER = b"bearer "
KEY_IN_BODY = frozenset({"/translate", "/detect"})
CHARGED = "headwise.charged"
"""Whose allowance this request was taken from."""


async def require_key(request: Request) -> None:
    """For routers that anyone with a key may use. Async, so that no thread is asked."""
    admit(request.app.state.server, request)


def admit(server: Server, request: Request, *, key: str | None = None) -> None:
    """Refuse strangers and those in a hurry; `key`: one that stood in the body."""
    _admit(server, request.scope, key)


def admit_unread(server: Server, scope: Scope) -> None:
    """The same for a request whose body is yet to come."""
    if server.keys and scope["path"] in KEY_IN_BODY and _key_of(scope) is None:
        _charge(server, scope, _address_of(scope))
    else:
        _admit(server, scope, None)


def _admit(server: Server, scope: Scope, key: str | None) -> None:
    caller = _address_of(scope)
    if server.keys:
        try:
            caller = "key " + server.keys.find(
                _key_of(scope) or key, in_body=scope["path"] in KEY_IN_BODY
            )
        except Refusal:
            _charge(server, scope, caller)
            raise
    _charge(server, scope, caller)


def _charge(server: Server, scope: Scope, caller: str) -> None:
    """One request of a caller; if another was charged for this one, it gets its own back."""
    before = scope.get(CHARGED)
    if before == caller:
        return
    server.rate.take(caller)
    if before is not None:
        server.rate.give_back(before)
    scope[CHARGED] = caller


def _address_of(scope: Scope) -> str:
    client: Any = scope.get("client")
    return "" if client is None else str(client[0])


def _key_of(scope: Scope) -> str | None:
    """The key in the headers; never from an address, which logs keep."""
    headers = dict(scope["headers"])
    given: bytes = headers.get(b"authorization", b"")
    found = given[len(BEARER) :] if given.lower().startswith(BEARER) else headers.get(b"x-api-key")
    return found.decode("latin-1").strip() or None if found else None
