"""Language models, word vectors and runs on the page: numbers of the server, a run that grows while
one looks, no empty shells."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from headwise.models.vector_space import VectorSpace
from headwise.randomness import numpy_generator
from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import LoadedModel
from headwise.tasks.language.language_model import LanguageModel
from tests.browser.conftest import RunningServer, Visit
from tests.browser.test_mechanics import ask, cells
from tests.browser.test_views import SETTINGS, check_accessible
from tests.explorer.data.test_run_logs import write_run
from tests.serving.api.test_language import ARPA

HOSTILE = "<img/src=x/onerror=alert(1)>"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("spoken")
    (path / "tiny.arpa").write_text(ARPA, encoding="utf-8")
    write_run(path / "runs" / "first", 1, 2, 3, 4)
    write_run(path / "runs" / HOSTILE.replace("/", "-"), 1, 5, model=True)
    return path


@pytest.fixture(scope="module")
def speaking(directory: Path) -> Iterator[str]:
    """A server without a translator: a language model, word vectors (one of them hostile), runs."""
    words = [HOSTILE, *(f"word{number}" for number in range(40))]
    space = VectorSpace(
        words, numpy_generator("words on a page").normal(size=(41, 7)), text_words=2_023_376
    )
    models = {
        "spoken": LoadedModel(
            "spoken", "language_model", LanguageModel.load(directory / "tiny.arpa"), language="en"
        ),
        "vectors": LoadedModel("vectors", "word_vectors", space),
    }
    running = RunningServer(create_app(models, ServerSettings(runs=directory / "runs")))
    yield running.address
    running.stop()


FAST = ("zh", "light", 390)


@pytest.mark.parametrize(
    ("language", "theme", "width"),
    [FAST, *(pytest.param(*one, marks=pytest.mark.prove) for one in SETTINGS if one != FAST)],
)
def test_only_views_that_can_show_something_and_all_of_them_clean(
    visit: Visit, speaking: str, language: str, theme: str, width: int
) -> None:
    watched = visit(language=language, theme=theme, width=width, at=speaking)
    watched.show("language?first=dogs+bark&second=bark+dogs")
    links = watched.page.locator("#views a")
    names = [
        str(links.nth(place).get_attribute("href")).removeprefix("#/").partition("?")[0]
        for place in range(links.count())
    ]
    assert names == ["language", "vectors", "numbers", "positions", "patterns", "runs"]
    for view in ("language", "vectors", "runs"):
        watched.show(view)
        page = watched.page
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
            f"{view} is wider than the window"
        )
        assert page.locator("main .problem:not([hidden])").count() == 0, view
        for button in page.locator(".tools [aria-expanded]").all():
            button.click()
        check_accessible(watched, view)


def test_two_sentences_token_by_token(visit: Visit, speaking: str, directory: Path) -> None:
    watched = visit(at=speaking)
    watched.show("language?first=dogs+bark&second=bark+dogs&beginning=dogs+____")
    page = watched.page
    own = LanguageModel.load(directory / "tiny.arpa")
    for place, text in enumerate(("dogs bark", "bark dogs")):
        scored = page.locator(".scored").nth(place)
        (score,) = own.score([text])
        assert scored.locator(".token-text").all_inner_texts() == [
            token.token for token in score.tokens
        ]
        shown = [
            float(number.replace("−", "-")) for number in scored.locator("small").all_inner_texts()
        ]
        assert shown == pytest.approx([token.log_probability for token in score.tokens], abs=1e-3)
    assert "best" in str(page.locator(".scored").nth(0).get_attribute("class"))
    assert "“dogs bark” is" in page.locator(".reading").nth(0).inner_text()
    first = page.locator(".sheet tbody tr").nth(0).locator("th, td").all_inner_texts()
    (likely,) = own.predict("dogs", count=1)
    assert first[0] == likely.text == "bark"
    assert float(first[1].replace("−", "-")) == pytest.approx(likely.log_probability, abs=1e-4)
    page.locator(".sheet tbody button").nth(0).click()
    watched.settle()
    assert page.get_by_label("Beginning of a sentence").input_value() == "dogs bark ____"


def test_unknown_words_are_not_crowned(visit: Visit, speaking: str) -> None:
    watched = visit(at=speaking)
    watched.show("language?first=qwer+asdf&second=yxcv")
    page = watched.page
    assert page.locator(".scored").count() == 2
    assert page.locator(".scored.best").count() == 0
    assert (
        "No verdict: most words of a sentence are unknown"
        in page.locator(".reading").nth(0).inner_text()
    )


def test_sums_of_words_say_how_much_text_they_stand_on(visit: Visit, speaking: str) -> None:
    watched = visit(at=speaking)
    watched.show("vectors?words=word3,+word1+-+word2")
    doubts = watched.page.locator(".doubt")
    assert doubts.count() == 1
    assert "learnt from 2,023,376 words of text" in doubts.inner_text()


def test_a_piece_that_begins_no_word_goes_on_with_the_last(visit: Visit, speaking: str) -> None:
    watched = visit(at=speaking)
    page = watched.page
    found = [
        ("ged", ["ged"]),
        ("barks", ["▁bark", "s"]),
        ("!", ["!"]),
        ("</s>", ["</s>"]),
        ("狗", ["狗"]),
    ]
    predictions = [
        {"text": text, "tokens": tokens, "log_probability": -1.0, "probability": 0.1}
        for text, tokens in found
    ]
    reply = {"model": "spoken", "beginning": "dog ____", "predictions": predictions}
    page.route("**/v1/predict", lambda route: route.fulfill(json=reply))
    for row, (shown, taken) in enumerate(
        [
            ("…ged", "dogged ____"),
            ("barks", "dog barks ____"),
            ("!", "dog! ____"),
            ("</s>", "dog ____"),
            ("狗", "dog狗 ____"),
        ]
    ):
        watched.show(f"language?beginning=dog+____&row={row}")
        button = page.locator(".sheet tbody button").nth(row)
        assert button.inner_text() == shown
        button.click()
        watched.settle()
        assert page.get_by_label("Beginning of a sentence").input_value() == taken


def test_a_map_of_words_with_their_cosines(visit: Visit, speaking: str) -> None:
    watched = visit(at=speaking)
    watched.show("vectors?words=word3,+word5+-+word7&count=5")
    page = watched.page
    reply = ask(watched, "v1/vectors", {"queries": ["word3", "word5 - word7"], "count": 5})
    shown = cells(watched)
    own = [
        [one["word"], f"{one['cosine']:.3f}"]
        for query in reply["queries"]
        for one in query["nearest"]
    ]
    assert shown == own
    assert page.locator(".chart svg path").count() == len(reply["words"])
    # Names are drawn after every point, so that none covers them; those asked for come last of all.
    assert page.locator(".chart svg text ~ path").count() == 0
    assert page.locator(".chart svg text").last.text_content() in [
        one["word"] for one in reply["words"] if one["asked"]
    ]
    page.locator(".chart").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".reading").first.inner_text().startswith("word3")
    page.get_by_label("Words, with commas").fill(HOSTILE)
    page.get_by_role("button", name="Show").click()
    watched.settle()
    assert page.locator(".chart text", has_text=HOSTILE).count() == 1
    assert page.locator("img").count() == 0
    page.get_by_label("Words, with commas").fill("nobody")
    watched.allowed = ("422",)
    page.get_by_role("button", name="Show").click()
    page.wait_for_selector(".problem:not([hidden]):has-text('is not among the 41 words')")


def test_what_is_measured_on_another_scale_has_its_own_figure(visit: Visit, tmp_path: Path) -> None:
    for place, name in enumerate(("one", "two")):
        write_run(tmp_path / name, 1, 2)
        (tmp_path / name / "recipe.yaml").write_text("task: translation\n", encoding="utf-8")
        with (tmp_path / name / "log.jsonl").open("a", encoding="utf-8") as log:
            for step, bleu in ((2, 7.5 + place), (4, 31.25 + place)):
                line = {
                    "kind": "valid",
                    "step": step,
                    "perplexity": 900 - step,
                    "bleu": bleu,
                    "chrf": 2 * bleu,
                }
                log.write(json.dumps(line) + "\n")
    running = RunningServer(create_app({}, ServerSettings(runs=tmp_path)))
    try:
        watched = visit(at=running.address)
        watched.show("runs?run=one&other=two")
        figure = watched.page.locator(
            "figure", has=watched.page.get_by_role("heading", name="BLEU and chrF")
        )
        figure.get_by_role("button", name="Table").click()
        headings = ["update", "one · BLEU", "one · chrF", "two · BLEU", "two · chrF"]
        expect(figure.locator("table thead th")).to_have_text(headings)
        expect(figure.locator("table tbody tr").last.locator("th, td")).to_have_text(
            ["4", "31.2500", "62.5000", "32.2500", "64.5000"]
        )
        expect(figure.locator(".series-names li")).to_have_count(4)
        perplexity = watched.page.locator(
            "figure", has=watched.page.get_by_role("heading", name="Perplexity")
        )
        expect(perplexity.locator(".series-names li")).to_have_count(2)
        expect(watched.page.get_by_role("heading", name="Accuracy")).to_be_hidden()
    finally:
        running.stop()


def test_a_run_grows_before_ones_eyes(visit: Visit, speaking: str, directory: Path) -> None:
    watched = visit(at=speaking)
    watched.show("runs?run=first")
    page = watched.page
    page.wait_for_selector("[role=status].live:has-text('update 4')")
    ticks = page.evaluate(
        "import('/static/axis_ticks.js').then((all) => all.linearTicks(20, 800, 3))"
    )
    assert ticks == [250, 500, 750]  # 500 alone would tell no distance
    loss = page.locator("figure", has=page.get_by_role("heading", name="Loss"))
    loss.get_by_role("button", name="Table").click()
    expect(loss.locator("table tbody tr")).to_have_count(4)
    with (directory / "runs" / "first" / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write(
            json.dumps({"kind": "train", "step": 9, "loss": 0.25, "learning_rate": 0.5}) + "\n"
        )
    page.wait_for_selector("[role=status].live:has-text('update 9')")
    expect(loss.locator("table tbody tr").last.locator("th, td")).to_have_text(["9", "0.2500"])
    expect(
        page.locator("figure", has=page.get_by_role("heading", name="Learning rate"))
    ).to_be_visible()


def test_two_runs_over_each_other(visit: Visit, speaking: str) -> None:
    watched = visit(at=speaking)
    watched.show("runs?run=first")
    page = watched.page
    other = HOSTILE.replace("/", "-")
    page.get_by_label("Beside it").select_option(other)
    page.wait_for_selector(f".series-names li:has-text('{other}')")
    loss = page.locator("figure", has=page.get_by_role("heading", name="Loss"))
    expect(loss.locator(".series-names li")).to_have_count(2)
    loss.locator(".chart").focus()
    page.keyboard.press("Home")
    assert loss.locator(".reading").inner_text().count(" · ") >= 2
    table = page.locator("figure", has=page.get_by_role("heading", name="All runs"))
    expect(table.locator("tbody tr")).to_have_count(2)
    expect(page.locator("figure").last).to_contain_text("12.5")
