"""Finds the route of a request and checks its method and content type before the body is read.

An unknown path gets 404, a wrong method 405 with `Allow`. Starlette's own router would be wrong in
two cases. If a path has a GET and a POST route, its 405 would name only one of them in `Allow`. And
because the content type is checked before the router runs, a PUT without a body would be told to
send JSON. Tested for every route and every method.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fastapi.routing import APIRoute
from starlette.routing import Route, Router

from headwise.serving.http.errors import Refusal

JSON = "application/json"
UNSUPPORTED = {
    "/translate_file": (
        "this server translates no files; send their text to /translate",
        "此服务器不翻译文件；请把文本发到 /translate",
    ),
    "/suggest": ("this server takes no suggestions", "此服务器不接受译文建议"),
}
"""Routes of LibreTranslate that this server does not have, and the message for each."""
UNKNOWN_PATH = (
    "there is nothing at this address; see /openapi.json",
    "该地址不存在；参见 /openapi.json",
)
CATCH_ALL = ":path}"
"""How the path of a route ends that matches everything below it."""


@dataclass
class RouteEntry:
    """The methods of all routes with one path, and the content types of their bodies."""

    methods: set[str] = field(default_factory=set)
    media_types: set[str] = field(default_factory=lambda: {JSON})


class RouteTable:
    """All routes of an application and of its routers, by path."""

    def __init__(self, routers: Iterable[Router]) -> None:
        self._exact: dict[str, RouteEntry] = {}
        self._below: dict[str, RouteEntry] = {}
        for route in (route for router in routers for route in router.routes):
            if isinstance(route, Route):
                is_catch_all = route.path.endswith(CATCH_ALL)
                table, path = (
                    (self._below, route.path.rpartition("{")[0])
                    if is_catch_all
                    else (self._exact, route.path)
                )
                entry = table.setdefault(path, RouteEntry())
                entry.methods |= route.methods or set()
                entry.media_types |= _content_types(route)

    @property
    def exact(self) -> Mapping[str, RouteEntry]:
        """Every path except those that match everything below them."""
        return self._exact

    def find(self, method: str, path: str) -> RouteEntry:
        """The entry of a path; an unknown path or a wrong method is refused."""
        found = self._exact.get(path)
        if found is None:
            found = next(
                (one for start, one in self._below.items() if path.startswith(start)), None
            )
        if found is None:
            en, zh = UNSUPPORTED.get(path, UNKNOWN_PATH)
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


def _content_types(route: Route) -> set[str]:
    """Content types that a route describes besides JSON."""
    if not isinstance(route, APIRoute):
        return set()
    return set((route.openapi_extra or {}).get("requestBody", {}).get("content", {}))
