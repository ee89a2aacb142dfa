"""Protection against cross-site request forgery (CSRF): refuses forms posted by pages of other
sites.

Browsers send such forms without asking. Headers of the request show where a form comes from:

    Sec-Fetch-Site    same-origin and none are accepted; browsers set it, pages cannot
    Origin            must name the host and port of the Host header; `null` does not
    neither           not a browser: accepted

JSON needs no such check: before a browser sends JSON to another site it asks that site (CORS), and
this server does not consent. Tested: each header.
"""

from collections.abc import Mapping

from headwise.serving.http.errors import Refusal

OWN_SITES = frozenset({b"same-origin", b"none"})


def refuse_cross_site(headers: Mapping[bytes, bytes]) -> None:
    """Refuse a request from a page of another site; header names are in lower case."""
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
