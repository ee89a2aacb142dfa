"""Every view of the menu, in both languages and themes, wide and narrow: quiet console, accessible,
inside its width."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.conftest import Visit, Watched

SETTINGS = [
    (language, theme, width)
    for language in ("en", "zh")
    for theme in ("light", "dark")
    for width in (1280, 390)
]
FAST = [("zh", "dark", 390)]
OTHERS = [pytest.param(*one, marks=pytest.mark.prove) for one in SETTINGS if one not in FAST]


def views_of(watched: Watched) -> list[str]:
    links = watched.page.locator("#views a")
    return [
        str(links.nth(place).get_attribute("href")).removeprefix("#/")
        for place in range(links.count())
    ]


def check_accessible(watched: Watched, view: str) -> None:
    found = Axe().run(watched.page).response["violations"]
    serious = [
        (view, problem["id"], [node["html"][:120] for node in problem["nodes"][:3]])
        for problem in found
        if problem["impact"] in ("serious", "critical")
    ]
    assert serious == []


@pytest.mark.parametrize(("language", "theme", "width"), [*FAST, *OTHERS])
def test_every_view_is_clean(visit: Visit, language: str, theme: str, width: int) -> None:
    watched = visit(language=language, theme=theme, width=width)
    watched.show("align")
    page = watched.page
    assert page.locator("html").get_attribute("lang") == {"en": "en", "zh": "zh-CN"}[language]
    assert page.locator("html").get_attribute("data-theme") == theme
    views = views_of(watched)
    assert len(views) >= 4
    for view in views:
        watched.show(view)
        assert page.locator("main h1").inner_text().strip()
        assert page.locator("#views a[aria-current=page]").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
            f"{view} is wider than the window"
        )
        assert page.locator("main .problem:not([hidden])").count() == 0, view
        for figure in page.locator("figure:visible").all():
            offered = figure.locator(".tools button").all_inner_texts()
            assert set(offered) >= {"SVG", "PNG", "CSV", "JSON"}, (
                view,
                figure.get_attribute("aria-label"),
                offered,
            )
            assert figure.locator(".tools [aria-expanded]").count() == 2
        for button in page.locator(".tools [aria-expanded]").all():
            button.click()
        check_accessible(watched, view)


def test_language_and_colours_can_be_changed_and_are_remembered(visit: Visit) -> None:
    watched = visit()
    watched.show("align")
    page = watched.page
    page.locator("#switches select").nth(0).select_option("zh")
    page.wait_for_selector("html[lang=zh-CN]")
    expect(page.locator("main h1")).to_have_text("翻译与对齐")
    page.locator("#switches select").nth(1).select_option("dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    watched.settle()
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    assert page.locator("html").get_attribute("data-theme") == "dark"
