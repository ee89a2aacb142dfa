"""The check at every address but the page and its health: a key where keys are asked for, and not too often.

A dependency of routes, not a rule about addresses: what an address is called must not decide who may use it. Tested through
the addresses.
"""

from fastapi import Request

from headwise.serving.state import Server

BEARER = "bearer "


async def require_key(request: Request) -> None:
    """For routers that anyone with a key may use. Async, so that no thread is asked."""
    admit(request.app.state.server, request)


def admit(server: Server, request: Request, *, key: str | None = None) -> None:
    """Refuse strangers and those in a hurry."""
    caller = "" if request.client is None else request.client.host
    if server.keys:
        given = request.headers.get("authorization", "")
        bearer = given[len(BEARER) :] if given.lower().startswith(BEARER) else None
        caller = "key " + server.keys.find(bearer or request.headers.get("x-api-key") or key)
    server.rate.take(caller)
