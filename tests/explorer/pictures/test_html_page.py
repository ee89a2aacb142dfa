"""The page: its data read back as a browser would, and what must never be in it."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwise.errors import UsageError
from headwise.explorer import write_page
from headwise.explorer.pictures.html_page import SCRIPTS, make_page
from tests.explorer.examples import CHINESE, ENGLISH, HOSTILE, make_trace

STATIC = resources.files("headwise.explorer").joinpath("static")


class PageReader(HTMLParser):
    """Every element with its attributes, and the raw text of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        self._open = (attributes.get("id") or tag) if tag in ("script", "style", "title") else ""

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open] = self.texts.get(self._open, "") + data


def read_data(page: str) -> Any:
    return json.loads(PageReader(page).texts["page_data"])


def test_weights_come_back_to_one_part_in_255() -> None:
    trace = make_trace()
    packed = read_data(make_page([trace], title="t"))["traces"][0]
    for attention, entry in zip(trace.maps, packed["maps"], strict=True):
        numbers = np.frombuffer(base64.b64decode(entry["weights"]), np.uint8).reshape(
            entry["shape"]
        )
        assert np.abs(numbers * entry["scale"] / 255 - attention.weights).max() <= 1 / 255
        assert (entry["kind"], entry["layer"], entry["name"]) == (
            attention.kind,
            attention.layer,
            attention.name,
        )


def test_tokens_and_words_come_back_as_they_were() -> None:
    packed = read_data(make_page([make_trace(HOSTILE, CHINESE)], title="t"))["traces"][0]
    assert packed["source"]["pieces"] == list(HOSTILE)
    assert packed["target"]["words"] == ["动物", "太", "累", "了", "。", "</s>"]
    assert packed["target_input"]["marks"] == [True, *[False] * (len(CHINESE) - 1)]
    assert packed["source"]["language"] == "en"


def test_markup_in_tokens_and_title_stays_text() -> None:
    plain, hostile = (
        PageReader(make_page([make_trace(pieces, pieces, title=title)], title=title))
        for pieces, title in (
            (ENGLISH, "t"),
            (HOSTILE, "</title><script>alert(1)</script>{{data}}"),
        )
    )
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in plain.elements]
    assert not re.search("[<>&]", hostile.texts["page_data"])
    assert hostile.texts["title"] == "</title><script>alert(1)</script>{{data}}"


def test_script_never_turns_text_into_markup() -> None:
    script = "".join(STATIC.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS)
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", script
    )


def test_page_names_no_address_but_the_svg_namespace() -> None:
    page = make_page([make_trace()], title="t")
    assert set(re.findall(r"\w+://[^\s\"'<>]*", page)) == {"http://www.w3.org/2000/svg"}
    assert page.count("http://") == 1
    for tag, attributes in PageReader(page).elements:
        assert not {"src", "href", "srcset", "action", "style"} & attributes.keys(), tag
        assert not any(name.startswith("on") for name in attributes)
    assert not re.search(r"url\(|@import|\bfetch\(|XMLHttpRequest|\bimport\b", page)


def test_policy_allows_this_style_and_script_and_nothing_else() -> None:
    reader = PageReader(make_page([make_trace()], title="t"))
    policy = next(
        item["content"]
        for _, item in reader.elements
        if item.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for name in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(reader.texts[name].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy


def test_languages_have_the_same_keys_and_places() -> None:
    english, chinese = (
        json.loads(STATIC.joinpath("saved_page", f"{name}.json").read_text(encoding="utf-8"))
        for name in ("en", "zh")
    )
    assert list(english) == list(chinese)
    for key in english:
        assert set(re.findall(r"\{\w+\}", english[key])) == set(
            re.findall(r"\{\w+\}", chinese[key])
        ), key
        assert english[key]
        assert chinese[key]


def test_every_text_used_exists_and_every_text_is_used() -> None:
    texts = json.loads(STATIC.joinpath("saved_page", "en.json").read_text(encoding="utf-8"))
    markup = STATIC.joinpath("saved_page", "page.html").read_text(encoding="utf-8")
    script = "".join(STATIC.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS)
    named = set(re.findall(r'data-text="(\w+)"', markup))
    assert named <= texts.keys()
    assert all(key in named or f'"{key}"' in script for key in texts)
    for direct in re.findall(r'\bsay\("(\w+)"', script):
        assert direct in texts


def test_script_files_stay_short_and_ids_exist() -> None:
    markup = STATIC.joinpath("saved_page", "page.html").read_text(encoding="utf-8")
    for name in SCRIPTS:
        script = STATIC.joinpath(name).read_text(encoding="utf-8")
        assert len(script.splitlines()) <= 400
        for used in re.findall(r'byId\("(\w+)"\)', script):
            assert f'id="{used}"' in markup


def test_page_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "page.html"
    write_page([make_trace(), make_trace(ENGLISH, CHINESE)], path, title="Where it looks")
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert not re.search(r"\{\{\w+\}\}", text)
    assert len(read_data(text)["traces"]) == 2
    assert [item.name for item in path.parent.iterdir()] == ["page.html"]


def test_nothing_to_show_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no trace to show"):
        write_page([], tmp_path / "page.html", title="t")
