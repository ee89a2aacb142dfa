"""The saved page: attention maps in one HTML file that needs no other file.

The files of `static/saved_page`, and those of `static/app` that it shares with the live page, are
joined with the traces (data/trace_json.py, one byte a weight). The page loads nothing, and its
content security policy forbids loading. Tokens are JSON without "<", and the script sets them with
textContent, so markup in a token stays text.

Tested against: weights decoded from the written page, a hostile token, no foreign address, the same
keys in both languages.
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from headwise.errors import UsageError
from headwise.explorer.data.attention_maps import Trace
from headwise.explorer.data.trace_json import pack_trace
from headwise.storage import write_text

LANGUAGES = ("en", "zh")
SCRIPTS = (
    "app/trace.js",
    "app/dom.js",
    "app/attention_links.js",
    "app/colour_scales.js",
    "app/heat_map.js",
    "saved_page/head_grid.js",
    "saved_page/page.js",
)
STYLES = ("app/heat_map.css", "saved_page/page.css")


def write_page(traces: Sequence[Trace], path: Path | str, *, title: str) -> None:
    """Write the page for these traces as one self-contained HTML file."""
    if not traces:
        raise UsageError(
            "there is no trace to show; give at least one", "没有可展示的轨迹；请至少给出一条"
        )
    path = Path(path)
    write_text(path, make_page(traces, title=title))


def make_page(traces: Sequence[Trace], *, title: str) -> str:
    """The text of the page."""
    style = "".join(_static(name) for name in STYLES)
    script = make_script()
    texts = {language: json.loads(_static(f"saved_page/{language}.json")) for language in LANGUAGES}
    parts = {
        "title": html.escape(title),
        "policy": _policy(style=style, script=script),
        "style": style,
        "script": script,
        "texts": _embed(texts),
        "data": _embed({"title": title, "traces": [pack_trace(trace) for trace in traces]}),
    }
    # One pass over the template: inserted text is not searched for placeholders.
    return re.sub(
        r"\{\{(\w+)\}\}", lambda place: parts[place.group(1)], _static("saved_page/page.html")
    )


def make_script() -> str:
    """The scripts as one module: their import lines go, since all of them share its scope."""
    lines = "\n".join(_static(name) for name in SCRIPTS).splitlines()
    return "\n".join(line for line in lines if not line.startswith("import ")) + "\n"


def _static(name: str) -> str:
    return (
        resources.files("headwise.explorer")
        .joinpath("static", *name.split("/"))
        .read_text(encoding="utf-8")
    )


def _embed(value: Any) -> str:
    """JSON that cannot end its script element or open a comment: "<", ">" and "&" are escaped."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(*, style: str, script: str) -> str:
    """The content security policy: nothing is loaded, and only this style and this script are
    allowed.
    """
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode(
        "ascii"
    )
