"""A server without a model trains one and opens it; a server that is stopped at work is explained
in the reader's language."""

import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from headwise.serving.api import trace as trace_addresses
from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.demo_training import DemoTraining
from headwise.serving.work.loaded_models import load_models
from tests.browser.conftest import BUNDLE, RunningServer, Visit
from tests.serving.work.test_demo_training import PRETEND


def test_the_page_has_a_model_trained_and_opens_it(
    visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "runs" / "demo"
    monkeypatch.setattr(
        DemoTraining, "command", lambda _: [sys.executable, "-c", PRETEND, str(run), str(BUNDLE)]
    )
    running = RunningServer(create_app({}, ServerSettings(demo=run, runs=run.parent)))
    try:
        watched = visit(at=running.address)
        watched.show("")
        page = watched.page
        assert page.locator("main h1").inner_text() == "No model yet"
        page.get_by_role("button", name="Train the model").click()
        expect(page.get_by_role("status").filter(has_text="step 10 of 40")).to_contain_text(
            "loss 2.500"
        )
        expect(page.get_by_role("status").filter(has_text="step 10 of 40")).to_contain_text(
            "BLEU 12.3"
        )
        assert page.locator("progress").get_attribute("value") == "10"
        page.get_by_role("link", name="Watch its curves").click()
        expect(page.locator("[role=status].live")).to_contain_text("demo is at update 10")
        expect(
            page.locator("figure", has=page.get_by_role("heading", name="BLEU and chrF")).locator(
                ".chart path"
            )
        ).not_to_have_count(0)
        page.go_back()
        (run / "go").touch()
        expect(
            page.get_by_role("status").filter(has_text="measured on sentences it never saw")
        ).to_be_visible()
        (run / "measured").touch()
        expect(page.locator("main h1")).to_have_text("Translate and align")
        watched.settle()
        assert page.locator(".words.query button").count() > 0
    finally:
        running.stop()


def test_a_server_that_is_stopped_at_work_is_explained(
    visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, over = threading.Event(), threading.Event()
    answer = trace_addresses.answer_trace

    def slow(name: str, translator: Any, body: Any, *, is_over: Any) -> Any:
        if body.text == "wait":
            begun.set()
            over.wait(20)
        return answer(name, translator, body, is_over=is_over)

    monkeypatch.setattr(trace_addresses, "answer_trace", slow)
    running = RunningServer(
        create_app(load_models([f"tiny={BUNDLE}"], device="cpu"), ServerSettings())
    )
    try:
        watched = visit(at=running.address, language="zh")
        watched.show("align")
        watched.allowed = ("Failed to load resource",)
        watched.page.locator("textarea").fill("wait")
        watched.page.get_by_role("button", name="翻译", exact=True).click()
        assert begun.wait(20)
        running.server.force_exit = running.server.should_exit = True
        # Cut off, or told 500 by a server that ends its tasks: both are explained, and both say
        # what to do. The work goes on until then (`finally`): it could answer before the server
        # has looked at its flags, which it does ten times a second.
        expect(watched.page.locator(".problem")).to_contain_text("请用 `headwise explore` 重新启动")
    finally:
        over.set()
        running.stop()
