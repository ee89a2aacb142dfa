"""What can be taken away from the page: every figure in four formats, and its request as a terminal
and a program send it."""

import csv
import io
import json
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image
from playwright.sync_api import Locator

from tests.browser.conftest import Visit, Watched
from tests.browser.test_views import views_of

SVG = "{http://www.w3.org/2000/svg}"
LIVE = ("seconds_since_change",)
"""What is another number a moment later."""


def save(watched: Watched, figure: Locator, kind: str) -> bytes:
    with watched.page.expect_download() as download:
        figure.get_by_role("button", name=f"Save as {kind}").click()
    assert download.value.suggested_filename.endswith(f".{kind.lower()}")
    return Path(download.value.path()).read_bytes()


def test_a_saved_heat_map_tells_what_its_colours_mean(visit: Visit) -> None:
    watched = visit()
    watched.show("heads?text=The+old+dog+saw+the+child.")
    root = ElementTree.fromstring(save(watched, watched.page.locator("figure").first, "SVG"))
    words = ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]
    assert (
        words[-2:]
        == watched.page.locator("figure").first.locator(".matrix-scale span").all_inner_texts()
    )


@pytest.mark.prove
def test_every_figure_can_be_saved_and_asked_for_again(visit: Visit) -> None:
    watched = visit()
    watched.show("align")
    for view in views_of(watched):
        watched.show(view)
        for figure in watched.page.locator("figure:visible").all():
            check_files(watched, figure)
            check_request(figure)


def check_files(watched: Watched, figure: Locator) -> None:
    assert ElementTree.fromstring(save(watched, figure, "SVG")).tag == f"{SVG}svg"
    assert min(Image.open(io.BytesIO(save(watched, figure, "PNG"))).size) > 100
    rows = list(csv.reader(io.StringIO(save(watched, figure, "CSV").decode("utf-8-sig"))))
    assert len(rows) > 1
    assert len({len(row) for row in rows}) == 1
    assert json.loads(save(watched, figure, "JSON"))


def check_request(figure: Locator) -> None:
    button = figure.get_by_role("button", name="Request")
    button.click()
    curl, python = figure.locator(".code pre").all_inner_texts()
    button.click()
    sent = subprocess.run(
        ["bash", "-c", curl.replace("curl ", "curl -sf ", 1)], capture_output=True, check=True
    )
    found: dict[str, Any] = {}
    exec(python, found)
    answers = [json.loads(sent.stdout), found["answer"]]
    for answer in answers:
        for key in LIVE:
            answer.pop(key, None)
    assert answers[0] == answers[1]
