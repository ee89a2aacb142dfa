"""The texts of the page: the same keys and places in both languages, every key that is used exists,
none is idle."""

import json
import re
from pathlib import Path
from typing import Any

import headwise.explorer

APP = Path(headwise.explorer.__file__).parent / "static" / "app"
FILES = sorted(APP.rglob("*.js"))
# Keys that are put together while the page runs: the beginning, and what may follow.
BUILT = re.compile(r"(?:text|tell)\(`([a-z_]+\.[a-z_]*)\$\{")
PLAIN = re.compile(r"""(?:text|tell)\(\s*"([a-z_]+\.[a-z_0-9]+)\"""")
MENU = {"menu", "title"}
# Names of markup languages: they look like addresses, and nothing is ever loaded from them.
NAMESPACES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"}


def load(language: str) -> dict[str, str]:
    texts: dict[str, Any] = json.loads((APP / f"{language}.json").read_text(encoding="utf-8"))
    return {f"{group}.{key}": words for group, keys in texts.items() for key, words in keys.items()}


def places(words: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", words))


def test_both_languages_say_the_same_things() -> None:
    en, zh = load("en"), load("zh")
    assert en.keys() == zh.keys()
    assert {key for key in en if places(en[key]) != places(zh[key])} == set()
    assert {key for key, words in zh.items() if not words.strip()} == set()
    # A name is a name in both; a sentence is not.
    same = {
        key
        for key in en
        if en[key] == zh[key] and re.search(r"[a-z]{3}", en[key]) and " " in en[key]
    }
    assert {key for key in same if "{" not in en[key]} == set()


def test_every_key_that_is_used_exists_and_none_is_idle() -> None:
    known = load("en")
    script = "\n".join(path.read_text(encoding="utf-8") for path in FILES)
    used = (
        set(PLAIN.findall(script))
        | set(re.findall(r'"([a-z_]+\.[a-z_0-9]+)"', script)) & known.keys()
    )
    used |= set(
        re.findall(r'data-text="([^"]+)"', (APP / "index.html").read_text(encoding="utf-8"))
    )
    assert used - known.keys() == set()
    beginnings = tuple(BUILT.findall(script))
    idle = {
        key
        for key in known.keys() - used
        if not key.startswith(beginnings) and key.split(".")[1] not in MENU
    }
    assert idle == set()


def test_the_page_takes_nothing_from_elsewhere_and_writes_no_markup() -> None:
    for path in [*FILES, *APP.rglob("*.css"), *APP.rglob("*.html")]:
        words = path.read_text(encoding="utf-8")
        addresses = set(re.findall(r"https?://[^\s\"'`<)]+", words)) - NAMESPACES
        assert addresses == set(), path.name
        assert (
            re.search(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function",
                words,
            )
            is None
        )
        assert (
            re.search(r"""setAttribute\(\s*["']style|\bstyle=["']|\bon[a-z]+=["']""", words) is None
        ), path.name


def test_scripts_can_be_read_in_one_sitting() -> None:
    """Characters are counted, because the formatter writes one argument a line where many are."""
    sizes = {path.name: len("".join(path.read_text(encoding="utf-8").split())) for path in FILES}
    assert {name: size for name, size in sizes.items() if size > 13_000} == {}
