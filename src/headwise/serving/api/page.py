"""`GET /` and `/static/…`: the files of the explorer's web page.

URLs are looked up in a list of the package's files that is built once; a URL is never turned into a
path. The content security policy lets the page load its own files and call its own server, nothing
else. The page cannot be framed, and inline scripts and styles do not run. Tested: every file, the
policy, URLs that try to leave the folder.
"""

from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Response

from headwise.serving.http.errors import Refusal

router = APIRouter(include_in_schema=False)

KINDS = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


@router.api_route("/", methods=["GET", "HEAD"])
async def show_page() -> Response:
    return _answer("index.html")


@router.api_route("/static/{name:path}", methods=["GET", "HEAD"])
async def send_file(name: str) -> Response:
    return _answer(name)


def _answer(name: str) -> Response:
    found = page_files().get(name)
    if found is None:
        raise Refusal(404, "no_address", en="there is nothing at this address", zh="该地址不存在")
    return Response(found, media_type=KINDS[name.rpartition(".")[2]], headers=HEADERS)


@cache
def page_files() -> dict[str, bytes]:
    """Every file of the page by its URL below /static/."""
    return dict(_walk(resources.files("headwise.explorer").joinpath("static", "app"), ""))


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found = []
    for item in folder.iterdir():
        if item.is_dir():
            found += _walk(item, f"{prefix}{item.name}/")
        elif item.name.rpartition(".")[2] in KINDS:
            found.append((prefix + item.name, item.read_bytes()))
    return found
