"""The view of a translator with a memory: its numbers are the server's, words can be chosen by
mouse and keys, what the memory changed is marked, in both languages and on a narrow page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from headwise.pocket import sentences
from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import load_models
from headwise.serving.work.memories import attach_memories
from headwise.tasks.memory_building import build
from tests.browser.conftest import RunningServer, Visit, Watched
from tests.browser.test_views import FAST, OTHERS, check_accessible

CORPUS = "{kind: pocket, split: train, count: 40}"
TEXT = next(iter(sentences("train", 1))).text("en")
WORDS = "figure[aria-label='The translation, word by word']"
VOTES = "figure[aria-label='Model against memory, and the examples']"


@pytest.fixture(scope="module", name="memory")
def _memory(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a tiny translator and its memory."""
    store = tmp_path_factory.mktemp("stores") / "pocket"
    build(tiny_run, store, [CORPUS], key_type="float32")
    models = attach_memories(load_models([f"tiny={tiny_run}"], device="cpu"), [str(store)])
    running = RunningServer(create_app(models, ServerSettings()))
    yield running.address
    running.stop()


def ask(address: str, **body: Any) -> Any:
    given = {"text": TEXT, "weight": 0.8, **body}
    return httpx.post(f"{address}/v1/memory", json=given, timeout=30).json()


def open_view(visit: Visit, address: str, more: str = "&weight=0.8", **settings: Any) -> Watched:
    watched = visit(at=address, **settings)
    watched.show(f"memory?text={TEXT.replace(' ', '+')}{more}")
    watched.page.wait_for_selector(".memory-examples li")
    watched.settle()
    return watched


def word(page: Page, place: int) -> Any:
    return page.locator(".memory-word").nth(place)


def test_words_and_votes_are_the_servers(visit: Visit, memory: str) -> None:
    page = open_view(visit, memory).page
    reply = ask(memory)
    assert page.locator(".sentence .translation").inner_text() == reply["target_text"].strip()
    expect(page.locator(".memory-word")).to_have_count(len(reply["target"]["words"]))
    changed = {
        reply["target"]["word_of_piece"][place]
        for place, one in enumerate(reply["places"])
        if one["changed"]
    }
    expect(page.locator(".memory-word.changed")).to_have_count(len(changed))
    assert changed
    word(page, 0).click()
    first = reply["places"][int(page.url.split("place=")[1].split("&")[0])]
    expect(page.locator(".memory-examples li")).to_have_count(len(first["examples"]))
    expect(page.locator(".memory-source").first).to_have_text(first["examples"][0]["source"])
    expect(page.locator(".memory-target mark").first).to_have_text(first["examples"][0]["word"])
    expect(page.locator(f"{VOTES} .memory-number").nth(1)).to_have_text(
        f"{100 * first['memory_probability']:.1f} %"
    )
    page.locator(VOTES).get_by_role("button", name="Table", exact=True).click()
    expect(page.locator(f"{VOTES} .drawer tbody tr")).to_have_count(len(first["examples"]))


def test_words_are_chosen_with_keys(visit: Visit, memory: str) -> None:
    page = open_view(visit, memory).page
    word(page, 0).click()
    expect(word(page, 0)).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(word(page, 1)).to_have_attribute("aria-pressed", "true")
    expect(word(page, 1)).to_be_focused()
    assert "place=" in page.url
    reading = page.locator(f"{WORDS} .reading").inner_text()
    page.reload()
    page.wait_for_selector(".memory-examples li")
    expect(page.locator(f"{WORDS} .reading")).to_have_text(reading)


def test_the_weight_can_be_chosen(visit: Visit, memory: str) -> None:
    watched = open_view(visit, memory, "")
    page = watched.page
    field = page.get_by_label("Weight of the memory λ")
    expect(field).to_have_value("")
    field.select_option("0")
    watched.settle()
    expect(page.locator(".memory-alone")).to_contain_text("the same translation")
    expect(page.locator(".memory-word.changed")).to_have_count(0)
    assert "weight=0" in page.url


def test_without_a_store_there_is_no_view(visit: Visit, address: str) -> None:
    page = visit().page
    page.goto(f"{address}/#/align")
    page.wait_for_selector("#views a")
    expect(page.locator("#views a[href^='#/memory']")).to_have_count(0)


@pytest.mark.parametrize(("language", "theme", "width"), [("en", "light", 1280), *FAST, *OTHERS])
def test_it_is_clean(visit: Visit, memory: str, language: str, theme: str, width: int) -> None:
    watched = open_view(visit, memory, language=language, theme=theme, width=width)
    page = watched.page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for button in page.locator(".tools [aria-expanded]").all():
        button.click()
    check_accessible(watched, "memory")


def test_nothing_is_pushed_aside_on_a_narrow_page(visit: Visit, memory: str) -> None:
    page = open_view(visit, memory, width=375).page
    for name in (".memory-words", ".memory-examples", ".memory-bars"):
        box = page.locator(name).first.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 375
