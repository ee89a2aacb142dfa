"""Forms of other sites are refused: a page elsewhere may have its reader's browser post one here
without asking (CSRF).

    Sec-Fetch-Site    same-origin and none pass; a browser writes it, and no page can
    Origin            must name the host and port of the request's Host; `null` does not
    neither           not a browser: passes

JSON needs no such rule: a browser asks this server before it sends JSON from another site, and is
not allowed to. Tested: each header.
"""

from collections.abc import Mapping

from headwise.serving.http.errors import Refusal

OWN_SITES = frozenset({b"same-origin", b"none"})


def refuse_other_sites(headers: Mapping[bytes, bytes]) -> None:
    """For bodies that a browser sends without asking first; names of headers in small letters."""
    site = headers.get(b"sec-fetch-site", b"none").strip().lower()
    origin = headers.get(b"origin")
    is_ours = (
        origin is None
        or origin.strip().lower().partition(b"://")[2] == headers.get(b"host", b"").lower()
    )
    if site not in OWN_SITES or not is_ours:
        raise Refusal(
            403,
            "other_site",
            en=(
                "forms are taken from this server's own pages and from programs, not from a page "
                "of another site; send JSON with `Content-Type: application/json`, from a server "
                "or a program"
            ),
            zh="表单只接受来自本服务器的页面或程序，不接受来自其他网站的页面；"
            "请由服务器或程序发送 JSON，并带上 `Content-Type: application/json`",
        )
