"""The views of a translation: numbers on screen are the server's, keys suffice, links bring back
the state, text stays text."""

import json
import re
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import httpx
import numpy as np
import pytest
from playwright.sync_api import Page, Route, expect

from headwise.explorer.data.word_grouping import group_pieces, merge_weights
from tests.browser.conftest import Visit

TEXT = "The old dog saw the child."


def trace(address: str, **body: Any) -> Any:
    return httpx.post(
        f"{address}/v1/trace", json={"model": "tiny", "text": TEXT, **body}, timeout=30
    ).json()


def read_table(page: Page, figure: int = 0) -> list[list[str]]:
    """The table alternative of a figure."""
    root = page.locator("figure").nth(figure)
    root.get_by_role("button", name="Table", exact=True).click()
    return root.locator(".drawer table").evaluate(
        "table => [...table.rows].map(row => [...row.cells].map(cell => cell.textContent))"
    )


def unpack(packed: Any) -> np.ndarray:
    import base64

    numbers = np.frombuffer(base64.b64decode(packed["weights"]), "<u2").reshape(packed["shape"])
    return numbers * packed["scale"] / 65535


def test_a_sentence_is_translated_with_the_keyboard_alone(visit: Visit, address: str) -> None:
    watched = visit()
    watched.show("align")
    page = watched.page
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "TEXTAREA"
    page.keyboard.press("Control+A")
    page.keyboard.type("I am here.")
    page.keyboard.press("Enter")
    watched.settle()
    expected = trace(address, text="I am here.")["target_text"]
    expect(page.locator(".translation")).to_have_text(expected)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('.words') !== null"):
            break
    page.keyboard.press("ArrowRight")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert re.search(r"0\.\d\d|1\.00", page.locator("figure .reading").first.inner_text())
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert "word=key-1" in page.url


@pytest.mark.parametrize("kind", ["cross", "encoder_self", "decoder_self"])
def test_weights_on_screen_are_the_servers(visit: Visit, address: str, kind: str) -> None:
    watched = visit()
    watched.show(f"heads?text={quote(TEXT)}&kind={kind}&level=piece&layer=0&head=1")
    table = read_table(watched.page)
    reply = trace(address, maps={"kinds": [kind], "bits": 16})
    sides = {
        "cross": ("target", "source"),
        "encoder_self": ("source", "source"),
        "decoder_self": ("target", "target_input"),
    }
    rows, columns = (reply[side]["pieces"] for side in sides[kind])
    assert table[0][1:] == columns
    assert [line[0] for line in table[1:]] == rows
    shown = np.array([[float(cell) for cell in line[1:]] for line in table[1:]])
    np.testing.assert_allclose(shown, unpack(reply["maps"][0])[1], atol=5.1e-5)


def test_words_and_heads_are_put_together_as_in_python(visit: Visit, address: str) -> None:
    watched = visit()
    sentence = "The gardener's seventeen umbrellas."
    watched.show(f"align?text={quote(sentence)}&level=word&head=mean&layer=0")
    table = read_table(watched.page)
    reply = trace(address, text=sentence, maps={"kinds": ["cross"], "bits": 16})
    rows, columns = (group_pieces(tuple(reply[side]["pieces"])) for side in ("target", "source"))
    merged = merge_weights(unpack(reply["maps"][0]), rows, columns)[:, :-1]
    # Without </s>, scaled to one.
    kept = merged[:, :, :-1] / merged[:, :, :-1].sum(axis=-1, keepdims=True)
    assert table[0][1:] == list(columns.text[:-1])
    shown = np.array([[float(cell) for cell in line[1:]] for line in table[1:]])
    np.testing.assert_allclose(shown, kept.mean(axis=0), atol=6e-5)


def test_the_value_under_the_cursor(visit: Visit, address: str) -> None:
    watched = visit()
    watched.show(f"heads?text={quote(TEXT)}&kind=encoder_self&level=piece&head=0&scale=log")
    page = watched.page
    page.locator(".matrix").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    reply = trace(address, maps={"kinds": ["encoder_self"], "bits": 16})
    value = unpack(reply["maps"][0])[0]
    page.locator(".matrix-body").hover(position={"x": 3, "y": 3})
    expect(page.locator("figure .reading").first).to_have_text(re.compile(rf"{value[0, 0]:.4f}$"))


def test_steps_and_tree_tell_the_servers_numbers(visit: Visit, address: str) -> None:
    watched = visit()
    watched.show(f"steps?text={quote(TEXT)}&step=2")
    reply = trace(address, top=8, tree=True)
    best = reply["steps"][1]["best"]
    shown = watched.page.locator(".option .bar-share").all_inner_texts()
    assert shown[: len(best)] == [f"{100 * np.exp(one['log_probability']):.2f} %" for one in best]
    watched.page.locator(".option:not(:disabled)").first.click()
    watched.settle()
    assert "forced=" in watched.page.url
    watched.show(f"tree?text={quote(TEXT)}")
    lines = watched.page.locator(".wide-table tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    assert [line[1] for line in lines] == [one["text"] or "—" for one in reply["n_best"]]
    assert [float(line[5]) for line in lines] == [round(one["score"], 4) for one in reply["n_best"]]
    assert watched.page.locator(".tree .node").count() == len(reply["tree"]["nodes"])
    watched.page.locator(".wide-table tbody button").nth(1).click()
    told = watched.page.locator(".reading").first.inner_text()
    watched.page.reload()
    watched.settle()
    assert watched.page.locator(".node.active.finished").count() == 1
    assert watched.page.locator(".reading").first.inner_text() == told


def test_a_link_brings_back_the_state(visit: Visit) -> None:
    watched = visit()
    watched.show(
        f"align?text={quote('I am here.')}&kind=encoder_self&head=1"
        "&level=piece&marks=show&word=query-2"
    )
    page = watched.page
    assert page.locator("textarea").input_value() == "I am here."
    assert page.locator(".words.query button[aria-pressed=true]").count() == 1
    assert page.get_by_role("radio", name="pieces").get_attribute("aria-checked") == "true"
    page.locator("#views a").nth(1).click()
    watched.settle()
    assert page.locator("textarea").input_value() == "I am here."
    page.go_back()
    watched.settle()
    assert "word=query-2" in page.url


def test_saved_files_hold_the_words(visit: Visit, address: str) -> None:
    watched = visit()
    watched.show(f"align?text={quote(TEXT)}")
    saved = {}
    for kind in ("SVG", "PNG", "CSV", "JSON"):
        with watched.page.expect_download() as download:
            watched.page.get_by_role("button", name=f"Save as {kind}").first.click()
        saved[kind] = download.value.path().read_bytes()
    root = ElementTree.fromstring(saved["SVG"])
    words = [
        "".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")
    ]
    assert [word for word in words if word in ("old", "dog", "child")] == ["old", "dog", "child"]
    assert saved["PNG"].startswith(b"\x89PNG")
    assert "child" in saved["CSV"].decode("utf-8-sig").splitlines()[0]
    assert json.loads(saved["JSON"])["translation"] == trace(address)["target_text"]


def test_a_head_in_three_numbers(visit: Visit, address: str) -> None:
    watched = visit()
    watched.show(f"heads?text={quote(TEXT)}")
    table = read_table(watched.page, figure=1)
    weights = unpack(trace(address, maps={"kinds": ["cross"], "bits": 16})["maps"][0])
    entropy = -(weights * np.log(np.where(weights > 0, weights, 1))).sum(axis=-1).mean(axis=-1)
    expected = np.stack([weights.max(axis=-1).mean(axis=-1), entropy], axis=1)
    np.testing.assert_allclose(
        [[float(cell) for cell in line[2:4]] for line in table[1:]], expected, atol=1e-4
    )
    np.testing.assert_allclose(
        [float(line[4]) for line in table[1:]], weights[:, :-1, -1].mean(axis=-1), atol=1e-4
    )
    with watched.page.expect_download() as download:
        watched.page.locator("figure").nth(1).get_by_role("button", name="Save as SVG").click()
    root = ElementTree.fromstring(download.value.path().read_bytes())
    assert len(list(root.iter("{http://www.w3.org/2000/svg}image"))) == 2


def test_the_request_shown_gives_the_same_answer(visit: Visit, address: str) -> None:
    watched = visit()
    watched.show(f"align?text={quote(TEXT)}")
    watched.page.get_by_role("button", name="Request").first.click()
    code = watched.page.locator(".code pre").nth(1).inner_text()
    found: dict[str, Any] = {}
    exec(code, found)
    assert found["answer"]["target_text"] == trace(address)["target_text"]


HOSTILE = "<img src=x onerror=alert(1)> <script>alert(2)</script> &amp; \u202e"


def test_markup_in_the_input_and_in_the_vocabulary_is_text(visit: Visit, address: str) -> None:
    watched = visit()
    reply = trace(address, maps={"kinds": ["cross"], "bits": 16}, tree=True, top=8)
    for side in ("source", "target", "target_input"):
        reply[side]["pieces"] = [HOSTILE] * len(reply[side]["pieces"])
        reply[side]["words"] = [HOSTILE] * len(reply[side]["words"])
    reply["target_text"] = HOSTILE
    for one in [step["chosen"] for step in reply["steps"]] + reply["tree"]["nodes"]:
        one["piece"] = HOSTILE
    watched.page.route("**/v1/trace", lambda route: route.fulfill(json=reply))
    for view in ("align", "heads", "steps", "tree"):
        watched.show(f"{view}?text={quote(HOSTILE)}")
        assert watched.page.locator(".translation").inner_text().startswith("<img src=x")
        assert watched.page.locator("main img, main script").count() == 0


def test_a_server_that_goes_away_is_explained(visit: Visit) -> None:
    watched = visit()
    watched.show("align")
    watched.allowed = ("Failed to load resource",)

    def drop(route: Route) -> None:
        route.abort("connectionreset")

    watched.page.route("**/v1/trace", drop)
    watched.page.locator("textarea").fill("I am old.")
    watched.page.get_by_role("button", name="Translate", exact=True).click()
    problem = watched.page.locator(".problem")
    problem.wait_for(state="visible")
    expect(problem).to_contain_text("The server does not answer.")
    expect(problem).to_contain_text("headwise explore")


@pytest.mark.parametrize("view", ["align?", "numbers?show=row&"])
def test_several_sentences_are_told_and_offered(visit: Visit, view: str) -> None:
    watched = visit()
    watched.show(f"{view}text={quote('The dog is old. Where is the cat?')}")
    page = watched.page
    expect(page.locator(".several")).to_contain_text("2 were given")
    page.locator(".several button").nth(1).click()
    watched.settle()
    assert (
        page.locator("form.sentence-form :is(textarea, input)").input_value() == "Where is the cat?"
    )
    expect(page.locator(".several")).to_be_empty()


@pytest.mark.parametrize("view", ["align", "numbers?show=row"])
def test_no_sentence_and_one_that_is_too_long_are_told(visit: Visit, view: str) -> None:
    watched = visit(language="zh")
    watched.show(view)
    page = watched.page
    field = page.locator("form.sentence-form :is(textarea, input)")
    for words, told in (("  ", "还没有句子"), ("a" * 2001, "2,001 个字符，最多读取 2,000 个")):
        field.fill(words)
        page.locator("form.sentence-form button.main").click()
        expect(page.locator(".problem:visible")).to_contain_text(told)
    assert field.input_value() == "a" * 2001
