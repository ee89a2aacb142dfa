"""How the page asks: once for the same question, never showing that it changed its mind, with a key where one is wanted."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import expect

from headwise.serving.api import trace as trace_addresses
from tests.browser.conftest import Visit


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
