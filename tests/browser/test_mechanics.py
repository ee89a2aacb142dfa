"""Attention by numbers, positions, patterns: what stands on the screen is what the server says."""

import json
import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit, Watched


def cells(watched: Watched, selector: str = ".sheet tbody tr") -> list[list[str]]:
    """Rows of a table, read at once: the browser writes a tab between two cells."""
    return [
        [cell.strip() for cell in row.split("\t")]
        for row in watched.page.locator(selector).all_inner_texts()
    ]


def numbers(texts: list[str]) -> list[float]:
    return [float(text.replace(",", "").replace("−", "-")) for text in texts]


def ask(watched: Watched, path: str, body: object) -> dict[str, object]:
    reply = watched.page.request.post(
        f"{watched.address}/{path}",
        data=json.dumps(body),
        headers={"content-type": "application/json"},
    )
    assert reply.ok, reply.text()
    return reply.json()


def test_the_waist_example_follows_its_slider(visit: Visit) -> None:
    watched = visit()
    watched.show("numbers")
    page = watched.page
    assert numbers([row[3] for row in cells(watched)]) == pytest.approx([0.0, 0.5, 0.5], abs=1e-4)
    assert page.locator(".sheet tfoot td").last.inner_text() == "45.5000"
    slider = page.get_by_label("query: waist (cm)")
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    watched.settle()
    page.wait_for_selector(".answer:has-text('56.50')")
    own = ask(watched, "v1/attend", {"example": "waist", "queries": [[56.5]]})
    assert numbers([row[2] for row in cells(watched)]) == pytest.approx(own["scores"][0], abs=1e-4)
    assert numbers([row[3] for row in cells(watched)]) == pytest.approx(own["weights"][0], abs=1e-4)
    assert float(page.locator(".sheet tfoot td").last.inner_text()) == pytest.approx(
        own["outputs"][0][0], abs=1e-4
    )
    assert "query=56.5" in page.url
    page.reload()
    watched.settle()
    assert "56.50" in page.locator(".answer").inner_text(), "the address is the state"


@pytest.mark.prove
def test_every_score_can_be_chosen_for_two_columns(visit: Visit) -> None:
    watched = visit()
    watched.show("numbers?example=two-column")
    for score in ("additive", "cosine", "location"):
        watched.page.locator("label.field:has(option[value=additive]) select").select_option(score)
        watched.settle()
        own = ask(
            watched, "v1/attend", {"example": "two-column", "queries": [[57, 83]], "score": score}
        )
        watched.page.wait_for_selector(f".figure-body math >> text={own['formula'][:1]}")
        outputs = numbers(watched.page.locator(".sheet tfoot td").all_inner_texts()[-2:])
        assert outputs == pytest.approx(own["outputs"][0], abs=1e-4)


def test_a_row_of_the_model_is_the_models(visit: Visit) -> None:
    watched = visit()
    watched.show("numbers?show=row&kind=decoder_self&layer=0&query=1")
    body = {
        "text": "The animal didn't cross the street because it was too tired.",
        "kind": "decoder_self",
        "layer": 0,
        "query": 1,
    }
    own = ask(watched, "v1/row", body)
    shown = cells(watched)
    assert [row[0] for row in shown] == own["key_pieces"]
    assert numbers([row[1] for row in shown]) == pytest.approx(own["products"], abs=1e-4)
    assert numbers([row[-1] for row in shown]) == pytest.approx(own["weights"], abs=1e-4)
    assert [row[3] for row in shown] == ["" if seen else "hidden" for seen in own["visible"]]
    watched.page.get_by_role(
        "group", name="Choose the query (the piece that attends):"
    ).get_by_role("button").nth(0).click()
    watched.settle()
    watched.page.wait_for_selector(".words button.chosen >> nth=0")
    assert "query=0" in watched.page.url
    watched.page.locator(".sheet tbody button").nth(1).click()
    assert "key=1" in watched.page.url


def test_positions_are_read_with_keys_and_saved(visit: Visit, tmp_path: Path) -> None:
    watched = visit()
    watched.show("positions?left=alibi&right=sinusoidal&length=16&dim=8&heads=2")
    page = watched.page
    own = ask(
        watched, "v1/positions", {"position": {"kind": "alibi"}, "length": 16, "dim": 8, "heads": 2}
    )
    left = page.locator(".side").nth(0)
    left.locator(".chart").focus()
    page.keyboard.press("Home")
    read = left.locator(".reading").last.inner_text()
    assert read.startswith("distance (key − query) -15:")
    assert f"head 1 {own['curves'][0]['values'][0]:.5g}" in read
    right = page.locator(".side").nth(1)
    right.locator(".matrix").focus()
    page.keyboard.press("ArrowRight")
    expect(right.locator(".reading").first).to_contain_text("position 0, column 1: 1.0000")
    with page.expect_download() as saved:
        left.get_by_role("button", name="Save as CSV").last.click()
    saved.value.save_as(tmp_path / "distances.csv")
    lines = (tmp_path / "distances.csv").read_text(encoding="utf-8-sig").splitlines()
    assert len(lines) == 32
    assert float(lines[1].split(",")[1]) == own["curves"][0]["values"][0]


def test_patterns_and_costs(visit: Visit) -> None:
    watched = visit()
    watched.show("patterns")
    page = watched.page
    expect(page.locator(".patterns button")).to_have_count(8)
    page.locator(".patterns button", has_text="window").click()
    watched.settle()
    own = ask(watched, "v1/patterns", {"kind": "window", "length": 64})
    page.wait_for_selector(f".reading:has-text('{own['num_pairs']:,} pairs')")
    slider = page.get_by_label("tokens to either side")
    slider.focus()
    page.keyboard.press("Home")
    watched.settle()
    page.wait_for_selector(".reading:has-text('190 pairs')")
    page.get_by_label("only earlier tokens").check()
    watched.settle()
    expect(page.locator(".patterns button")).to_have_count(5)
    costs = page.locator("figure").last
    costs.locator(".chart").focus()
    page.keyboard.press("End")
    expect(costs.locator(".reading")).to_contain_text("tokens 65,536: fused 68.36 · window 1.901")
    with page.expect_download() as saved:
        costs.get_by_role("button", name="Save as SVG").click()
    assert "<svg" in Path(saved.value.path()).read_text(encoding="utf-8")


def test_what_was_measured_is_told_in_the_readers_language(visit: Visit, address: str) -> None:
    watched = visit(language="zh")
    watched.show("patterns")
    notes = watched.page.locator("figure").nth(2).locator("p.quiet")
    expect(notes.filter(has_text="测得")).to_contain_text("约需 509.0 GiB 内存")
    told = " ".join(notes.all_inner_texts())
    assert (
        re.findall(r"\b(?:would|need|heads|compiled|True|False|window|rank|measured)\b", told) == []
    )
    assert watched.page.locator("figure").nth(2).get_by_text("窗口", exact=True).count() > 0
    (shipped,) = httpx.get(f"{address}/v1/costs").json()["costs"]
    texts = httpx.get(f"{address}/static/en.json").json()["patterns"]
    assert shipped["conditions"]["kernels"] == texts["h200_kernels"]
    assert {point["remark"] for point in shipped["points"]} == {None, texts["h200_remark"]}


def test_bars_around_a_difference_belong_together(visit: Visit) -> None:
    watched = visit()
    watched.show("numbers")
    raised = watched.page.locator(".formula msup").first
    assert raised.evaluate("one => [one.children[0].localName, one.children[0].textContent]") == [
        "mrow",
        "|q−k|",
    ]


def test_the_menu_of_a_narrow_page_shows_where_one_is(visit: Visit) -> None:
    watched = visit(width=390)
    for view in ("patterns", "align"):
        watched.show(view)
        box = watched.page.locator("#views a[aria-current]").bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= 390 - box["width"]
