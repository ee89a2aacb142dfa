"""Figures and fonts: no font is assumed beyond the one matplotlib brings."""

import sys
from pathlib import Path

import pytest

from headwise.errors import UsageError
from headwise.explorer.pictures import matplotlib_figure
from headwise.explorer.pictures.matplotlib_figure import (
    Fonts,
    explain_missing,
    find_fonts,
    make_labels,
)
from headwise.language import use_language


def test_base_font_draws_german_and_the_word_mark() -> None:
    assert find_fonts().can_draw("▁Straße – „über“ …→")


def test_labels_without_a_font_become_numbers_and_the_picture_says_so() -> None:
    fonts = Fonts((matplotlib_figure.BASE_FONT,), frozenset(map(ord, "abc")))
    labels = make_labels(("a", "猫", "b"), fonts)
    assert labels.texts == ("1", "2", "3")
    assert "No Chinese font is installed" in explain_missing([labels])
    assert "No installed font has" in explain_missing([make_labels(("ا",), fonts)])
    assert explain_missing([make_labels(("a",), fonts)]) == ""
    assert explain_missing([labels], instead="See elsewhere.").endswith("See elsewhere.")


def test_a_font_installed_after_matplotlib_wrote_its_list_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its list is read from a file that is never renewed; here a font of its own plays the part of
    the new one."""
    from matplotlib import font_manager

    new = "DejaVu Sans Mono"
    file = font_manager.findfont(font_manager.FontProperties(family=[new]))
    listed = [entry for entry in font_manager.fontManager.ttflist if entry.name != new]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", listed)
    monkeypatch.setattr(matplotlib_figure, "WIDE_FONTS", (new,))
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(file), __file__])
    matplotlib_figure._list_new_fonts.cache_clear()
    assert find_fonts().families == (matplotlib_figure.BASE_FONT, new)
    matplotlib_figure._list_new_fonts.cache_clear()


def test_control_characters_and_long_words_are_tamed() -> None:
    labels = make_labels(("a\nb", "w" * 99), find_fonts())
    assert labels.texts[0] == "a\ufffdb"
    assert len(labels.texts[1]) == matplotlib_figure.MAX_LABEL_LENGTH


def test_chinese_captions_fall_back_to_english_without_a_font() -> None:
    use_language("zh")
    assert Fonts(("x",), frozenset(map(ord, "layer"))).say("layer", "层") == "layer"
    assert Fonts(("x",), frozenset(map(ord, "层"))).say("layer", "层") == "层"


def test_missing_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install headwise\[plots\]"):
        find_fonts()


def test_pictures_leave_pyplot_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    find_fonts()
    matplotlib_figure.new_figure(height=1.0)
    assert "matplotlib.pyplot" not in sys.modules


def test_a_picture_is_what_its_name_says(tmp_path: Path) -> None:
    figure = matplotlib_figure.new_figure(height=2.0)
    figure.add_subplot().plot([1, 2])
    for name in ("a.svg", "b.SVG"):
        matplotlib_figure.save_figure(figure, tmp_path / name)
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert text.lstrip().startswith("<?xml")
    assert "</svg>" in text
    assert text == (tmp_path / "b.SVG").read_text(encoding="utf-8"), (
        "no date, no name drawn by chance"
    )
    matplotlib_figure.save_figure(figure, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UsageError, match=r"'a\.jpeg' does not end in \.png or \.svg"):
        matplotlib_figure.save_figure(figure, tmp_path / "a.jpeg")
