"""How the page asks: once for the same question, never showing that it changed its mind, with a key
where one is wanted."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from headwise.serving.api import trace as trace_addresses
from headwise.serving.app import create_app
from headwise.serving.http.api_keys import add_key
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import load_models
from tests.browser.conftest import BUNDLE, RunningServer, Visit


@dataclass
class Gate:
    """Traces of the text "wait" are held until `open` is set; every text that arrived is noted."""

    open: threading.Event = field(default_factory=threading.Event)
    texts: list[str] = field(default_factory=list)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate, answer = Gate(), trace_addresses.answer_trace

    def held(name: str, translator: Any, body: Any, *, is_over: Any) -> Any:
        gate.texts.append(body.text)
        if body.text == "wait":
            gate.open.wait(20)
        return answer(name, translator, body, is_over=is_over)

    monkeypatch.setattr(trace_addresses, "answer_trace", held)
    yield gate
    gate.open.set()


def test_the_same_question_while_it_is_being_answered(visit: Visit, gate: Gate) -> None:
    watched = visit()
    watched.show("align?text=first")
    page = watched.page
    page.locator("textarea").fill("wait")
    go = page.get_by_role("button", name="Translate", exact=True)
    for _ in range(2):
        go.click()
    page.wait_for_timeout(100)
    assert page.locator(".problem:visible").count() == 0
    gate.open.set()
    watched.settle()
    expect(page.locator(".words.key button").first).to_have_text("wait")
    assert page.locator(".problem:visible").count() == 0
    assert gate.texts.count("wait") == 1


def test_leaving_a_view_and_coming_back_while_it_works(visit: Visit, gate: Gate) -> None:
    watched = visit()
    watched.show("align?text=first")
    page = watched.page
    page.locator("textarea").fill("wait")
    page.get_by_role("button", name="Translate", exact=True).click()
    for view in ("heads", "numbers", "align"):
        page.locator(f"#views a[href^='#/{view}']").click()
        page.wait_for_timeout(60)
    gate.open.set()
    watched.settle()
    expect(page.locator(".words.key button").first).to_have_text("wait")
    assert page.locator(".problem:visible").count() == 0


def test_a_key_that_is_not_known_can_be_given_again(visit: Visit, tmp_path: Path) -> None:
    keys = tmp_path / "keys.txt"
    key = add_key(keys, "alice")
    running = RunningServer(
        create_app(load_models([f"tiny={BUNDLE}"], device="cpu"), ServerSettings(keys=keys))
    )
    try:
        watched = visit(at=running.address)
        watched.allowed = ("Failed to load resource",)
        watched.show("align?text=wait")
        page = watched.page
        for wrong in ("hw_wrong", "hw_again"):
            page.locator("input[type=password]").fill(wrong)
            page.get_by_role("button", name="Use it").click()
            expect(page.get_by_role("alert")).to_contain_text("not known here")
        # The second refusal reads like the first, which may still stand there.
        watched.until(lambda: page.evaluate("sessionStorage.getItem('headwise-key')") == "")
        page.locator("input[type=password]").fill(key)
        page.get_by_role("button", name="Use it").click()
        expect(page.locator(".words.key button").first).to_have_text("wait")
        page.get_by_role("button", name="Request").first.click()
        curl, python = page.locator(".code pre").all_inner_texts()
        assert '-H "Authorization: Bearer $HEADWISE_KEY"' in curl
        assert key not in curl + python
        found: dict[str, Any] = {}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HEADWISE_KEY", key)
            exec(python, found)
        assert found["answer"]["source_text"] == "wait"
        # Taken back while the page is open.
        page.evaluate("sessionStorage.setItem('headwise-key', 'hw_old')")
        page.locator("textarea").fill("another")
        page.get_by_role("button", name="Translate", exact=True).click()
        expect(page.locator("input[type=password]")).to_be_visible()
    finally:
        running.stop()


def test_a_slider_asks_when_it_rests_and_too_many_questions_are_explained(visit: Visit) -> None:
    watched = visit()
    watched.show("numbers")
    page = watched.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/v1/" in request.url else None)
    slider = page.locator("input[type=range]").first
    move = """(input, [values, kinds]) => {
      for (const value of values) {
        input.value = value;
        for (const kind of kinds) input.dispatchEvent(new Event(kind, { bubbles: true }));
      }
    }"""
    slider.evaluate(move, [[50, 51, 52, 53, 54], ["input"]])
    expect(page.locator("output").first).to_have_text("54.0")
    expect(page.locator(".answer")).to_contain_text("Query 54.00")
    assert len(asked) == 2  # the first movement and the last
    assert "query=" not in page.url
    # As by a key that is held down.
    slider.evaluate(move, [[55, 56, 57, 58, 59], ["input", "change"]])
    expect(page.locator(".answer")).to_contain_text("Query 59.00")
    assert len(asked) <= 4
    assert "query=59" in page.url
    watched.allowed = ("Failed to load resource",)
    refusal = {"error": {"code": "too_fast", "message": "send several texts", "message_zh": "…"}}
    page.route(
        "**/v1/attend",
        lambda route: route.fulfill(status=429, json=refusal, headers={"Retry-After": "7"}),
    )
    slider.press("ArrowRight")
    expect(page.locator(".problem")).to_contain_text("Wait 7 s")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    "view",
    ["align?kind=foo", "heads?kind=foo", "tree?beam=99", "steps?alpha=x", "numbers?weights=foo"],
)
def test_a_link_with_a_wrong_setting_is_told_in_words(
    visit: Visit, view: str, language: str
) -> None:
    watched = visit(language=language)
    watched.allowed = ("422",)
    watched.show(view)
    page = watched.page
    problem = page.locator(".problem:visible")
    if problem.count():  # views that know the wrong value show their usual one instead
        expect(problem).to_contain_text(
            {"en": "a setting that does not exist", "zh": "设置并不存在"}[language]
        )
        expect(problem).not_to_contain_text("must be")
        expect(problem).not_to_contain_text("必须是")
        problem.get_by_role("link").click()
        watched.settle()
    expect(page.locator(".problem:visible")).to_have_count(0)
    expect(page.locator(".figure:visible").first).to_be_visible()


def test_an_error_leaves_no_earlier_results(visit: Visit) -> None:
    watched = visit()
    watched.allowed = ("Failed to load resource",)
    for view, addresses in (
        ("align?text=first", "**/v1/trace"),
        ("numbers?show=row&text=first", "**/v1/row"),
    ):
        watched.show(view)
        page = watched.page
        expect(page.locator(".figure:visible").first).to_be_visible()
        page.route(addresses, lambda route: route.abort("connectionreset"))
        page.locator("form.sentence-form :is(textarea, input)").fill("second")
        page.locator("form.sentence-form button.main").click()
        expect(page.locator(".problem:visible")).to_contain_text("The server does not answer.")
        expect(page.locator(".figure:visible")).to_have_count(0)
        expect(page.locator(".translation:visible")).to_have_count(0)
        page.unroute(addresses)
        page.locator("form.sentence-form button.main").click()
        watched.settle()
        expect(page.locator(".problem:visible")).to_have_count(0)
        expect(page.locator(".figure:visible").first).to_be_visible()
