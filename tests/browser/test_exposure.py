"""The view "after a wrong word": its words are the server's, a wrong word can be chosen or typed, a
second model stands beside the first, and a right translation shows the drift."""

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
from tests.browser.conftest import RunningServer, Visit, Watched
from tests.browser.test_views import FAST, OTHERS, check_accessible
from tests.tasks.tiny import train_tiny
from tests.tasks.translation.test_parallel_recipes import CTC
from tests.tasks.translation.test_recurrent import train_recurrent

FIRST = next(iter(sentences("train", 1)))
TEXT, RIGHT = FIRST.text("en"), FIRST.text("de")
DRIFT = "figure[aria-label='How far the decoder drifts']"


@pytest.fixture(scope="module", name="exposed")
def _exposed(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with two models that read their own words, and one that does not."""
    folder = tmp_path_factory.mktemp("exposed-page")
    train_recurrent(folder / "recurrent")
    train_tiny(folder / "parallel", [*CTC, "training.steps=2"])
    given = [f"tiny={tiny_run}", *(f"{one}={folder / one}" for one in ("recurrent", "parallel"))]
    running = RunningServer(create_app(load_models(given, device="cpu"), ServerSettings()))
    yield running.address
    running.stop()


def ask(address: str, **body: Any) -> Any:
    given = {"model": "tiny", "text": TEXT, **body}
    return httpx.post(f"{address}/v1/exposure", json=given, timeout=30).json()


def open_view(visit: Visit, address: str, more: str = "", **settings: Any) -> Watched:
    watched = visit(at=address, **settings)
    watched.show(f"exposure?text={TEXT.replace(' ', '+')}{more}")
    watched.page.wait_for_selector(".path-word")
    watched.settle()
    return watched


def words(page: Page, model: str, side: int) -> list[str]:
    rows = page.locator(f".path-model[aria-label='{model}'] .path-words").nth(side)
    return rows.locator(".path-text").all_inner_texts()


def test_both_continuations_are_the_servers(visit: Visit, exposed: str) -> None:
    page = open_view(visit, exposed).page
    reply = ask(exposed)
    expect(page.locator(".path-model")).to_have_count(2)
    assert words(page, "tiny", 0) == reply["right"]["side"]["words"]
    assert words(page, "tiny", 1) == reply["wrong"]["side"]["words"]
    expect(page.locator(".path-model").first.locator(".path-word.forced")).to_have_count(2)
    models = page.locator(".field:has(span:text-is('Model')) option").all_inner_texts()
    assert [one.split()[0] for one in models] == ["tiny", "recurrent"]
    page.get_by_role("button", name="Table", exact=True).first.click()
    assert page.locator("figure .drawer tbody tr").count() > 4


def test_a_likely_word_is_chosen_with_keys_or_one_is_typed(visit: Visit, exposed: str) -> None:
    watched = open_view(visit, exposed, "&beside=-")
    page = watched.page
    expect(page.locator(".path-model")).to_have_count(1)
    likely = ask(exposed)["likely"]
    button = page.locator(".chips button", has_text=likely[3]["piece"].lstrip("▁")).last
    button.press("Enter")
    watched.settle()
    chosen = ask(exposed, wrong_tokens=[likely[3]["token"]])
    expect(page.locator(".chips [aria-pressed=true]")).to_be_focused()
    assert words(page, "tiny", 1) == chosen["wrong"]["side"]["words"]
    assert f"first={likely[3]['token']}" in page.url
    field = page.get_by_label("Wrong beginning, typed")
    field.fill("zwei")
    field.press("Tab")
    watched.settle()
    assert words(page, "tiny", 1) == ask(exposed, wrong="zwei")["wrong"]["side"]["words"]
    assert "wrong=zwei" in page.url
    assert "first=" not in page.url


def test_a_right_translation_shows_the_drift(visit: Visit, exposed: str) -> None:
    watched = open_view(visit, exposed)
    page = watched.page
    expect(page.locator(DRIFT)).to_be_hidden()
    field = page.get_by_label("The right translation (if you know it)")
    field.fill(RIGHT)
    field.press("Tab")
    watched.settle()
    expect(page.locator(DRIFT)).to_be_visible()
    expect(page.locator(f"{DRIFT} section")).to_have_count(2)
    positions = ask(exposed, reference=RIGHT)["positions"]
    rows = page.locator(f"{DRIFT} section").first.locator("tbody tr")
    expect(rows).to_have_count(len(positions))
    expect(rows.first.locator("td").first).to_have_text("✓")


def test_another_sentence_forgets_what_was_forced(visit: Visit, exposed: str) -> None:
    watched = open_view(visit, exposed, "&wrong=zwei&reference=Der+Hund")
    page = watched.page
    field = page.locator(".sentence textarea")
    field.fill("The cat is old.")
    page.get_by_role("button", name="Translate").click()
    watched.settle()
    expect(page.get_by_label("Wrong beginning, typed")).to_have_value("")
    expect(page.get_by_label("The right translation (if you know it)")).to_have_value("")
    assert "wrong=" not in page.url


def test_the_right_beginning_is_no_wrong_one(visit: Visit, exposed: str) -> None:
    watched = open_view(visit, exposed, "&reference=Der+Hund&wrong=zwei&beside=-")
    watched.allowed = ("422",)
    page = watched.page
    field = page.get_by_label("Wrong beginning, typed")
    field.fill("Der")
    field.press("Tab")
    expect(page.locator(".sentence .problem")).to_contain_text("give another beginning")


@pytest.mark.parametrize(("language", "theme", "width"), [("en", "light", 1280), *FAST, *OTHERS])
def test_it_is_clean(visit: Visit, exposed: str, language: str, theme: str, width: int) -> None:
    more = f"&reference={RIGHT.replace(' ', '+')}"
    watched = open_view(visit, exposed, more, language=language, theme=theme, width=width)
    page = watched.page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for button in page.locator(".tools [aria-expanded]").all():
        button.click()
    check_accessible(watched, "exposure")
