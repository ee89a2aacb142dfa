"""What each address takes, settled before a body is read: 404 for no address, 405 with `Allow` for
a method it does not take, and the types of body that its description names.

A router answers 405 from the first route that has the path, so an address with a GET route and a
POST route would name only one of them. And a body is checked before a router is asked: without this
table a PUT without a body was told to send JSON. Tested for every address and every method.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fastapi.routing import APIRoute
from starlette.routing import Route, Router

from headwise.serving.http.errors import Refusal

JSON = "application/json"
NOT_OFFERED = {
    "/translate_file": (
        "this server translates no files; send their text to /translate",
        "此服务器不翻译文件；请把文本发到 /translate",
    ),
    "/suggest": ("this server takes no suggestions", "此服务器不接受译文建议"),
}
"""Addresses that clients of LibreTranslate may ask for, and what they are told."""
NO_ADDRESS = (
    "there is nothing at this address; see /openapi.json",
    "该地址不存在；参见 /openapi.json",
)
OPEN_ENDED = ":path}"
"""How the path of a route ends that takes everything below it."""


@dataclass
class Address:
    """The methods of all routes with one path, and the types of body they take."""

    methods: set[str] = field(default_factory=set)
    media_types: set[str] = field(default_factory=lambda: {JSON})


class Addresses:
    """All routes of an application and of the routers it includes, by their path."""

    def __init__(self, routers: Iterable[Router]) -> None:
        self._exact: dict[str, Address] = {}
        self._below: dict[str, Address] = {}
        for route in (route for router in routers for route in router.routes):
            if isinstance(route, Route):
                is_open = route.path.endswith(OPEN_ENDED)
                table, path = (
                    (self._below, route.path.rpartition("{")[0])
                    if is_open
                    else (self._exact, route.path)
                )
                address = table.setdefault(path, Address())
                address.methods |= route.methods or set()
                address.media_types |= _described_types(route)

    @property
    def exact(self) -> Mapping[str, Address]:
        """Every address but those below a directory."""
        return self._exact

    def find(self, method: str, path: str) -> Address:
        """Refuse an address that is not there, and a method that the address does not take."""
        found = self._exact.get(path)
        if found is None:
            found = next(
                (one for start, one in self._below.items() if path.startswith(start)), None
            )
        if found is None:
            en, zh = NOT_OFFERED.get(path, NO_ADDRESS)
            raise Refusal(404, "no_address", en=en, zh=zh)
        if method not in found.methods:
            allowed = ", ".join(sorted(found.methods))
            raise Refusal(
                405,
                "no_method",
                en=f"this address does not take this method; it takes {allowed}",
                zh=f"该地址不接受此方法；它接受 {allowed}",
                headers={"Allow": allowed},
            )
        return found


def _described_types(route: Route) -> set[str]:
    """Types that a route describes besides JSON."""
    if not isinstance(route, APIRoute):
        return set()
    return set((route.openapi_extra or {}).get("requestBody", {}).get("content", {}))
