"""A language model that attends, on the page: all its heads, with the server's numbers, and nothing
that only translators have."""

import base64
from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import expect

from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import LoadedModel, load_models
from tests.browser.conftest import BUNDLE, RunningServer, Visit
from tests.browser.test_mechanics import ask
from tests.browser.test_views import check_accessible
from tests.explorer.reading import WORDS, make_reader

TEXT = "the+old+dog+saw+a+child"


@pytest.fixture(scope="module")
def reading() -> Iterator[str]:
    models = {"gpt": LoadedModel("gpt", "language_model", make_reader(), language="en")}
    running = RunningServer(create_app(models, ServerSettings()))
    yield running.address
    running.stop()


def test_all_heads_of_a_language_model(visit: Visit, reading: str) -> None:
    watched = visit(at=reading, language="zh", width=390)
    watched.show(f"heads?text={TEXT}&layer=1&head=1")
    page = watched.page
    assert page.locator("#views a").first.inner_text() == "所有的头"
    expect(page.locator(".heads-row")).to_have_count(3)
    expect(page.locator(".heads button")).to_have_count(6)
    large = page.locator("figure", has=page.get_by_role("heading", name="一个头"))
    large.get_by_role("button", name="表格").click()
    expect(large.locator("thead th")).to_have_text(["关注 →", "</s>", *TEXT.split("+")])
    body = {
        "text": TEXT.replace("+", " "),
        "maps": {"kinds": ["decoder_self"], "layers": [1], "heads": [1], "bits": 16},
    }
    (packed,) = ask(watched, "v1/trace", body)["maps"]  # type: ignore[misc]
    weights = (
        np.frombuffer(base64.b64decode(packed["weights"]), "<u2").reshape(7, 7)
        * packed["scale"]
        / 65535
    )
    shown = [
        [float(cell) for cell in row.split("\t")[1:]]
        for row in large.locator("tbody tr").all_inner_texts()
    ]
    np.testing.assert_allclose(shown, weights, atol=6e-5)
    large.get_by_role("button", name="请求").click()
    found: dict[str, dict[str, list[object]]] = {}
    exec(large.locator(".code pre").last.inner_text(), found)
    assert found["answer"]["maps"] == [packed]
    # Nothing that belongs to a translation: no search, no prefix, no test by leaving words out.
    assert page.locator("input[type=number], .translation-box").count() == 0
    assert page.get_by_role("button", name="真的重要吗").count() == 0
    check_accessible(watched, "heads")


def test_hidden_marks_are_told_and_a_hostile_word_is_a_word(visit: Visit, reading: str) -> None:
    watched = visit(at=reading)
    watched.show("heads?marks=hide")
    page = watched.page
    page.locator("textarea").fill(f"the {WORDS[-1]} saw")
    page.get_by_role("button", name="Read", exact=True).click()
    watched.settle()
    large = page.locator("figure", has=page.get_by_role("heading", name="One head"))
    expect(large.locator(".reading")).to_contain_text(
        "of the attention lies on hidden sentence marks"
    )
    assert page.locator("main img").count() == 0
    page.locator("textarea").fill("dog " * 13)
    watched.allowed = ("422",)
    page.get_by_role("button", name="Read", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("was trained to read 12 at once")


def test_a_text_is_read_step_by_step_and_written_on_by_hand(visit: Visit, reading: str) -> None:
    watched = visit(at=reading)
    watched.show(f"steps?text={TEXT}")
    page = watched.page
    expect(page.locator(".where")).to_have_text("step 7 of 7")
    expect(page.locator(".look")).to_have_count(7)
    page.get_by_role("button", name="First step").click()
    expect(page.locator(".look")).to_have_text("</s>1.00")
    (step,) = ask(watched, "v1/trace", {"text": "the", "top": 8})["steps"][:1]  # type: ignore[index]
    shown = page.locator(".option .bar-share").all_inner_texts()
    assert shown[: len(step["best"])] == [
        f"{100 * np.exp(one['log_probability']):.2f} %" for one in step["best"]
    ]
    piece = next(
        one["piece"] for one in step["best"] if one["piece"] not in ("▁the", "</s>", "<unk>")
    )
    page.get_by_role("button", name=f"{piece},").click()
    watched.settle()
    assert page.locator("textarea").input_value() == piece.removeprefix("▁")
    expect(page.locator(".where")).to_have_text("step 2 of 2")
    check_accessible(watched, "steps")


def test_one_of_its_rows_opened_up(visit: Visit, reading: str) -> None:
    watched = visit(at=reading)
    watched.show(f"numbers?show=row&text={TEXT}&layer=1&head=1&query=3")
    page = watched.page
    body = {"text": TEXT.replace("+", " "), "layer": 1, "head": 1, "query": 3}
    row = ask(watched, "v1/row", body)
    cells_ = [
        line.split("\t")
        for line in page.locator(".sheet").first.locator("tbody tr").all_inner_texts()
    ]
    assert [float(line[-1]) for line in cells_] == [round(weight, 4) for weight in row["weights"]]  # type: ignore[attr-defined]
    assert [line[3] for line in cells_] == [""] * 4 + ["hidden"] * 3
    check_accessible(watched, "numbers")


def test_beside_a_translator_it_is_one_more_model_of_what_can_show_it(visit: Visit) -> None:
    models = {
        **load_models([f"tiny={BUNDLE}"], device="cpu"),
        "gpt": LoadedModel("gpt", "language_model", make_reader(), language="en"),
    }
    running = RunningServer(create_app(models, ServerSettings()))
    try:
        watched = visit(at=running.address)
        watched.show("heads?text=the+dog&kind=cross&beam=2&prefix=Der")
        page = watched.page
        page.get_by_label("Model").select_option("gpt")
        watched.settle()
        expect(page.get_by_role("button", name="Read", exact=True)).to_be_visible()
        kinds = page.locator(".controls .field:has(span:text-is('Attention')) option")
        expect(kinds).to_have_text(["text → what came before"])
        page.get_by_role("link", name="Beam tree").click()
        watched.settle()
        expect(page.get_by_role("button", name="Translate", exact=True)).to_be_visible()
    finally:
        running.stop()
