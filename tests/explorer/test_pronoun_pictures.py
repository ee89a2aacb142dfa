"""The pronoun picture: the row of the pronoun, its arcs, and the marked translation."""

import dataclasses
import warnings
from pathlib import Path

import numpy as np
import pytest

from headwise.errors import UsageError
from headwise.explorer import draw_pronoun_picture, drawing, pronoun_pictures
from headwise.explorer.drawing import find_fonts, new_figure
from headwise.explorer.pronoun_pictures import PRONOUNS, HeadPlace, most_changed_head, pronoun_row
from headwise.explorer.traces import AttentionMap
from tests.explorer.examples import CHINESE, ENGLISH, make_trace
from tests.explorer.test_heat_maps import assert_drawn


def sharp_trace():  # type: ignore[no-untyped-def]
    """A trace in which "it" (piece 7) gives 0.5 to "animal", 0.2 + 0.1 to "tir" + "ed", 0.15 to itself, 0.05 to the end."""
    weights = np.full((1, len(ENGLISH), len(ENGLISH)), 1 / len(ENGLISH))
    weights[0, 7] = 0.0
    weights[0, 7, [1, 4, 5, 7, 10]] = [0.5, 0.2, 0.1, 0.15, 0.05]
    return dataclasses.replace(make_trace(), maps=(AttentionMap("encoder.0", "encoder_self", 0, weights),))


def test_row_of_the_pronoun() -> None:
    row = pronoun_row(sharp_trace(), "It", read=HeadPlace(0), written=HeadPlace(), marks=PRONOUNS)
    assert row.words[row.pronoun] == "it"
    found = {word: round(float(weight), 6) for word, weight in zip(row.words, row.weights, strict=True) if weight > 0}
    assert found == {"animal": 0.5, "tired": 0.3, "it": 0.15, "</s>": 0.05}
    assert [row.translation[place] for place in row.marked] == ["es"]
    assert "</s>" not in row.translation


def test_one_arc_for_each_other_word_and_wider_for_more_weight() -> None:
    row = pronoun_row(sharp_trace(), "it", read=HeadPlace(0, 0), written=HeadPlace(), marks=PRONOUNS)
    axes = new_figure(height=3.0).add_axes((0, 0, 1, 1))
    pronoun_pictures._draw_row(axes, row, find_fonts(), top=200.0)
    to_animal, to_tired = (patch.get_linewidth() for patch in axes.patches)
    assert to_animal - 0.6 == pytest.approx((to_tired - 0.6) * 5 / 3)
    written = [text.get_text() for text in axes.texts]
    assert {"0.50", "0.30"} <= set(written)
    assert any("itself 0.15" in text and "mark 0.05" in text for text in written)


def test_picture_is_drawn_with_and_without_chinese(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "WIDE_FONTS", ())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_pronoun_picture(
            [make_trace(), make_trace(ENGLISH, CHINESE)], tmp_path / "a.png", word="it", read=HeadPlace(1, "max")
        )
    assert_drawn(tmp_path / "a.png")


def test_chinese_pronoun_and_empty_translation_without_a_font(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "WIDE_FONTS", ())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_pronoun_picture([make_trace(CHINESE, ("</s>",))], tmp_path / "a.png", word="累")
    assert_drawn(tmp_path / "a.png")


@pytest.mark.parametrize("word", ["they", "</s>"])
def test_absent_word_is_refused(tmp_path: Path, word: str) -> None:
    with pytest.raises(UsageError, match=f"{word}' is not in the sentence"):
        draw_pronoun_picture([make_trace()], tmp_path / "a.png", word=word)


def test_nothing_to_draw_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no trace to draw"):
        draw_pronoun_picture([], tmp_path / "a.png")


def test_the_head_that_changes_most_is_found() -> None:
    def with_row(place: int):  # type: ignore[no-untyped-def]
        """Head 0 is even; in head 1 the pronoun (piece 7) looks at one piece alone."""
        weights = np.full((2, len(ENGLISH), len(ENGLISH)), 1 / len(ENGLISH))
        weights[1, 7] = 0.0
        weights[1, 7, place] = 1.0
        even = np.full_like(weights, 1 / len(ENGLISH))
        maps = (AttentionMap("a", "encoder_self", 0, even), AttentionMap("b", "encoder_self", 1, weights))
        return dataclasses.replace(make_trace(), maps=maps)

    assert most_changed_head([with_row(1), with_row(4)], "it", kind="encoder_self") == HeadPlace(1, 1)
    longer = make_trace((*ENGLISH[:-1], "▁indeed", ENGLISH[-1]))
    with pytest.raises(UsageError, match="give two that differ in one word"):
        most_changed_head([make_trace(), longer], "it", kind="encoder_self")
