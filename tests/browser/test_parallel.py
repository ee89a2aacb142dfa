"""The view of parallel translation: each decoding has its figure, its numbers are the server's, and
everything works with keys, in both languages, on a narrow page."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import load_models
from tests.browser.conftest import RunningServer, Visit, Watched
from tests.browser.test_translation_views import read_table
from tests.browser.test_views import SETTINGS, check_accessible
from tests.tasks.tiny import train_tiny

TEXT = "The dog is old."
BOTH = "data.train={kind: pocket, count: 300, second_wording: 0.4}"
GLANCING = "training.objective={kind: glancing, label_smoothing: 0}"
PARALLEL = ["model.kind=parallel", "decoding=null"]
MODELS = {
    "masked": [
        *PARALLEL,
        BOTH,
        "training.objective.kind=masked",
        "decoding={kind: mask_predict, passes: 3, lengths: 3}",
    ],
    "edited": [*PARALLEL, "model.length.kind=edited", "decoding={kind: edits, rounds: 3}"],
    "ctc": [
        *PARALLEL,
        "model.length.kind=upsampled",
        "model.structure.kind=ctc",
        GLANCING,
        "decoding.kind=one_pass",
    ],
    "graph": [
        *PARALLEL,
        "model.length={kind: upsampled, factor: 3}",
        "model.structure={kind: graph, link_heads: 2}",
        GLANCING,
        "decoding.kind=lookahead",
    ],
    "fertility": [*PARALLEL, "model.length.kind=fertility", "decoding.kind=one_pass"],
    "by_step": [BOTH],
}
FIGURES = {
    "masked": {"passes", "lengths"},
    "edited": {"passes"},
    "ctc": {"ctc"},
    "graph": {"graph"},
    "fertility": {"fertilities"},
    "by_step": {"drafts"},
}
TITLES = {
    "passes": "What each pass wrote",
    "lengths": "How many words?",
    "ctc": "The grid of CTC",
    "graph": "The graph and the path through it",
    "fertilities": "Fertilities over the source",
    "drafts": "Drafts, accepted and rejected",
}


@pytest.fixture(scope="module")
def parallel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with one tiny model of each kind."""
    directory = tmp_path_factory.mktemp("parallel-page")
    for name, words in MODELS.items():
        train_tiny(directory / name, [*words, "training.steps=2"])
    models = load_models([f"{name}={directory / name}" for name in MODELS], device="cpu")
    running = RunningServer(create_app(models, ServerSettings()))
    yield running.address
    running.stop()


def trace(address: str, model: str, **body: Any) -> Any:
    given = {"model": model, "text": TEXT, "passes": True, **body}
    return httpx.post(f"{address}/v1/trace", json=given, timeout=30).json()


def open_model(visit: Visit, address: str, model: str, **more: Any) -> Watched:
    watched = visit(at=address, **more)
    watched.show(f"parallel?model={model}&text=The+dog+is+old.")
    watched.page.wait_for_selector("figure")
    watched.settle()
    return watched


def figure(page: Page, name: str) -> Any:
    return page.locator(f"figure[aria-label='{TITLES[name]}']")


@pytest.mark.parametrize("model", MODELS)
def test_the_figures_are_those_of_the_decoding(visit: Visit, parallel: str, model: str) -> None:
    page = open_model(visit, parallel, model).page
    for name in TITLES:
        expect(figure(page, name)).to_have_count(int(name in FIGURES[model]))
    shown = page.locator(".sentence .translation").inner_text()
    kind = page.locator(".field:has(span:text-is('Decoding')) select").first.input_value()
    assert shown == trace(parallel, model, decoding={"kind": kind})["target_text"].strip()


def test_the_player_goes_through_the_passes(visit: Visit, parallel: str) -> None:
    page = open_model(visit, parallel, "masked").page
    passes = trace(parallel, "masked", decoding={"kind": "mask_predict"})["passes"]
    figure_of_passes = figure(page, "passes")
    assert len(passes) > 1
    last = [one["piece"].replace("▁", "") for one in passes[-1]["after"]]
    words = figure_of_passes.locator(".stage-piece")
    told = [one.replace("▁", "") for one in words.all_inner_texts()]
    assert told == last
    figure_of_passes.get_by_role("button", name="First step").click()
    expect(figure_of_passes.locator(".stage-word.empty")).to_have_count(len(passes[0]["after"]))
    assert "frame=1" in page.url
    figure_of_passes.get_by_role("button", name="One step on").press("Enter")
    expect(figure_of_passes.locator(".stage-word.new")).to_have_count(len(passes[0]["after"]))
    figure_of_passes.get_by_role("button", name="One step on").press("Enter")
    hidden = sum(one["deleted"] for one in passes[1]["before"])
    expect(figure_of_passes.locator(".stage-word.gone")).to_have_count(hidden)
    expect(figure_of_passes.locator(".stage-said")).to_contain_text(f"the {hidden} least probable")
    figure_of_passes.get_by_role("button", name="First step").click()
    figure_of_passes.get_by_role("button", name="Play").click()
    expect(figure_of_passes.locator(".stage-word.new")).not_to_have_count(0)
    figure_of_passes.get_by_role("button", name="Pause").click()


def test_fewer_passes_can_be_asked_for(visit: Visit, parallel: str) -> None:
    watched = open_model(visit, parallel, "masked")
    page = watched.page
    field = page.locator(".field:has(span:text-is('passes')) input")
    assert field.input_value() == "3"
    field.fill("1")
    field.press("Tab")
    watched.settle()
    expect(figure(page, "passes").locator(".where")).to_have_text("pass 1 of 1")
    assert "passes=1" in page.url
    page.locator(".field:has(span:text-is('Decoding')) select").select_option("one_pass")
    watched.settle()
    assert "decoding=one_pass" in page.url


def test_the_table_of_a_grid_is_the_servers(visit: Visit, parallel: str) -> None:
    page = open_model(visit, parallel, "ctc").page
    positions = trace(parallel, "ctc", decoding={"kind": "one_pass"})["record"]["positions"]
    rows = read_table(page)[1:]
    assert [row[1] for row in rows] == [one["chosen"]["piece"] or "∅" for one in positions]
    assert [row[3] for row in rows] == [
        "" if one["written"] is None else str(one["written"] + 1) for one in positions
    ]
    assert figure(page, "ctc").locator("svg [data-place]").count() == len(positions)


@pytest.mark.parametrize("model", ["ctc", "graph", "fertility"])
def test_places_of_a_drawing_are_read_with_the_arrow_keys(
    visit: Visit, parallel: str, model: str
) -> None:
    page = open_model(visit, parallel, model).page
    frame = page.locator("figure .tree").first
    frame.focus()
    page.keyboard.press("Home")
    first = page.locator("figure .reading").first.inner_text()
    page.keyboard.press("ArrowRight")
    second = page.locator("figure .reading").first.inner_text()
    assert first != second
    page.keyboard.press("ArrowLeft")
    expect(page.locator("figure .reading").first).to_have_text(first)
    expect(page.locator("figure svg .active").first).to_be_visible()


def test_two_models_are_measured_beside_each_other(visit: Visit, parallel: str) -> None:
    watched = open_model(visit, parallel, "ctc")
    page = watched.page
    expect(page.get_by_label("Model and decoding")).to_have_value("by_step:greedy")
    page.get_by_role("button", name="Measure").click()
    watched.settle()
    clocks = page.locator("figure[aria-label='The time of one sentence']")
    expect(clocks).to_be_visible()
    for place, model in enumerate(("by_step", "ctc")):
        shown = clocks.locator(".clock").nth(place)
        expect(shown).to_contain_text(model)
        expect(shown).to_contain_text("ms")
        expect(shown.locator(".clock-mark")).to_have_count(7)
    expect(clocks.locator(".clock").nth(1)).to_contain_text("passes of the model: 1 ")
    clocks.get_by_role("button", name="Table", exact=True).click()
    assert clocks.locator("tbody tr").count() == 2


def test_what_is_shown_is_measured_with_its_numbers(visit: Visit, parallel: str) -> None:
    watched = visit(at=parallel)
    watched.show("parallel?model=masked&passes=2&text=The+dog+is+old.")
    page = watched.page
    page.get_by_role("button", name="Measure").click()
    watched.settle()
    shown = page.locator("figure[aria-label='The time of one sentence'] .clock").nth(1)
    expect(shown).to_contain_text("passes of the model: 2 ")


def test_words_are_marked_with_their_wording(visit: Visit, parallel: str) -> None:
    watched = open_model(visit, parallel, "masked")
    page = watched.page
    panel = page.locator("figure[aria-label^='Why is it worse']")
    expect(panel).to_be_visible()
    watched.settle()
    place = int(panel.locator(".quiet").first.inner_text().split()[1]) - 1
    models = panel.locator("dt strong").all_inner_texts()
    assert set(models) == set(MODELS)
    for number, model in enumerate(models):
        told = httpx.post(
            f"{parallel}/v1/wordings", json={"model": model, "count": 24}, timeout=60
        ).json()["sentences"]
        marked = panel.locator(".marked").nth(number)
        words = marked.locator(".origin").all_inner_texts()
        assert words == [one["text"] for one in told[place]["words"]]
        names = {"first": "first wording", "second": "second wording"}
        names |= {"mixture": "a mixture", "other": "neither"}
        expect(marked.locator(".verdict")).to_have_text(names[told[place]["verdict"]])
    panel.get_by_role("button", name="Later").click()
    expect(panel.locator(".quiet").first).to_have_text(f"sentence {place + 2} of 24")


def test_without_such_models_the_page_says_how_to_make_them(visit: Visit, address: str) -> None:
    watched = visit()
    watched.show("parallel")
    page = watched.page
    expect(page.get_by_text("has learnt two right translations")).to_be_visible()
    page.get_by_text("The commands").click()
    expect(page.locator("details pre")).to_contain_text("data.train.second_wording=0.4")


def test_what_is_refused_is_a_sentence(visit: Visit, parallel: str) -> None:
    watched = open_model(visit, parallel, "masked")
    watched.allowed = ("422",)
    watched.show("parallel?model=masked&text=The+dog.&passes=99")
    expect(watched.page.locator(".problem:not([hidden])").first).to_contain_text(
        "asks for a setting that does not exist"
    )


FAST = ("zh", "dark", 375)


@pytest.mark.parametrize(
    ("language", "theme", "width"),
    [FAST, *(pytest.param(*one, marks=pytest.mark.prove) for one in SETTINGS)],
)
@pytest.mark.parametrize("model", MODELS)
def test_every_figure_is_clean(
    visit: Visit, parallel: str, language: str, theme: str, width: int, model: str
) -> None:
    watched = open_model(visit, parallel, model, language=language, theme=theme, width=width)
    page = watched.page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("main .problem:not([hidden])").count() == 0
    for one in page.locator("figure:visible").all():
        offered = one.locator(".tools button").all_inner_texts()
        assert set(offered) >= {"SVG", "PNG", "CSV", "JSON"}
    check_accessible(watched, f"parallel, {model}")
