"""The page in a real browser: Debian's chromium, driven by Playwright, against a real server with a
tiny model.

Without a chromium these tests are skipped with a word on what to install; where HEADWISE_BROWSER is
set (in CI) its absence is a failure. Every page opened through `visit` is watched: no error on its
console, no request that fails or goes elsewhere.
"""

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvicorn
from fastapi import FastAPI
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import load_models

BUNDLE = Path(__file__).resolve().parents[1] / "fixtures" / "format-1" / "bundle"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium() -> str | None:
    names = (
        os.environ.get("HEADWISE_BROWSER", ""),
        "chromium",
        "chromium-browser",
        "google-chrome",
    )
    return next((found for name in names if name and (found := shutil.which(name))), None)


class RunningServer:
    """uvicorn in a thread, on a free port of this machine."""

    def __init__(self, app: FastAPI) -> None:
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.server = uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False))
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],), daemon=True)
        self.thread.start()
        until = time.monotonic() + 30
        while not self.server.started:
            assert time.monotonic() < until
            time.sleep(0.01)

    def stop(self) -> None:
        self.server.should_exit = self.server.force_exit = True
        self.thread.join(timeout=30)


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Where a server with a tiny translator listens."""
    running = RunningServer(
        create_app(load_models([f"tiny={BUNDLE}"], device="cpu"), ServerSettings())
    )
    yield running.address
    running.stop()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = find_chromium()
    if path is None and os.environ.get("HEADWISE_BROWSER"):
        pytest.fail(
            "HEADWISE_BROWSER is set, but there is no chromium: apt-get install chromium "
            "fonts-noto-cjk"
        )
    if path is None:
        pytest.skip("the page is tested in a real browser: apt-get install chromium fonts-noto-cjk")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield found
        found.close()


@dataclass
class Watched:
    """A page and what went wrong on it."""

    page: Page
    address: str
    problems: list[str] = field(default_factory=list)
    allowed: tuple[str, ...] = ()
    """What may go wrong in this test."""

    def __post_init__(self) -> None:
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.problems.append(f"error {error}"))
        self.page.on("dialog", lambda dialog: self.problems.append(f"dialog {dialog.message}"))
        self.page.on("request", self._see)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type} {message.text}")

    def _see(self, request: Request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.problems.append(f"request {request.url}")

    def show(self, view: str) -> None:
        """Open a view (`align?text=…`) and wait until it has drawn."""
        self.page.goto(f"{self.address}/#/{view}")
        self.settle()

    def settle(self) -> None:
        # The page's policy forbids what Playwright would evaluate to wait for a function: selectors
        # only.
        self.page.wait_for_timeout(40)
        self.page.wait_for_selector("html:not([data-asking]) main :is(h1, [role=alert])")

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something that no selector tells holds."""
        for _ in range(200):
            if holds():
                return
            self.page.wait_for_timeout(50)
        assert holds()

    @property
    def unforeseen(self) -> list[str]:
        return [
            problem
            for problem in self.problems
            if not any(words in problem for words in self.allowed)
        ]


Visit = Callable[..., Watched]


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Visit]:
    """visit(language="zh", theme="dark", width=390) → a watched page on the server."""
    opened: list[Watched] = []

    def open_page(
        *, language: str = "en", theme: str = "light", width: int = 1280, at: str = ""
    ) -> Watched:
        context = browser.new_context(
            locale="zh-CN" if language == "zh" else "en-US",
            color_scheme="dark" if theme == "dark" else "light",
            viewport={"width": width, "height": 900},
            reduced_motion="reduce",
            accept_downloads=True,
        )
        context.set_default_timeout(30_000)
        opened.append(Watched(context.new_page(), at or address))
        return opened[-1]

    yield open_page
    problems = [problem for watched in opened for problem in watched.unforeseen]
    for watched in opened:
        watched.page.context.close()
    assert problems == []
