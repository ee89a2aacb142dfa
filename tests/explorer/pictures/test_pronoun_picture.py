"""The pronoun picture: the row of the pronoun, its arcs, and the marked translation."""

import dataclasses
import warnings
from pathlib import Path

import numpy as np
import pytest

from headwise.errors import UsageError
from headwise.explorer import draw_pronoun_picture
from headwise.explorer.data.attention_maps import AttentionMap, MapKind, Trace
from headwise.explorer.pictures import matplotlib_figure, pronoun_picture
from headwise.explorer.pictures.matplotlib_figure import find_fonts, new_figure
from headwise.explorer.pictures.pronoun_picture import (
    PRONOUNS,
    LayerHead,
    find_antecedent_head,
    pronoun_row,
)
from tests.explorer.examples import CHINESE, ENGLISH, make_trace
from tests.explorer.pictures.test_heat_maps import assert_drawn


def sharp_trace():  # type: ignore[no-untyped-def]
    """A trace in which "it" (piece 7) gives 0.5 to "animal", 0.2 + 0.1 to "tir" + "ed", 0.15 to
    itself, 0.05 to the end."""
    weights = np.full((1, len(ENGLISH), len(ENGLISH)), 1 / len(ENGLISH))
    weights[0, 7] = 0.0
    weights[0, 7, [1, 4, 5, 7, 10]] = [0.5, 0.2, 0.1, 0.15, 0.05]
    return dataclasses.replace(
        make_trace(), maps=(AttentionMap("encoder.0", "encoder_self", 0, weights),)
    )


def test_row_of_the_pronoun() -> None:
    row = pronoun_row(sharp_trace(), "It", read=LayerHead(0), written=LayerHead(), marks=PRONOUNS)
    assert row.words[row.pronoun] == "it"
    found = {
        word: round(float(weight), 6)
        for word, weight in zip(row.words, row.weights, strict=True)
        if weight > 0
    }
    assert found == {"animal": 0.5, "tired": 0.3, "it": 0.15, "</s>": 0.05}
    assert [row.translation[place] for place in row.marked] == ["es"]
    assert "</s>" not in row.translation


def test_one_arc_for_each_other_word_and_wider_for_more_weight() -> None:
    row = pronoun_row(
        sharp_trace(), "it", read=LayerHead(0, 0), written=LayerHead(), marks=PRONOUNS
    )
    axes = new_figure(height=3.0).add_axes((0, 0, 1, 1))
    pronoun_picture._draw_row(axes, row, find_fonts(), top=200.0)
    to_animal, to_tired = (patch.get_linewidth() for patch in axes.patches)
    assert to_animal - 0.6 == pytest.approx((to_tired - 0.6) * 5 / 3)
    written = [text.get_text() for text in axes.texts]
    assert {"0.50", "0.30"} <= set(written)
    assert any("itself 0.15" in text and "mark 0.05" in text for text in written)


def test_picture_is_drawn_with_and_without_chinese(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matplotlib_figure, "WIDE_FONTS", ())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_pronoun_picture(
            [make_trace(), make_trace(ENGLISH, CHINESE)],
            tmp_path / "a.png",
            word="it",
            read=LayerHead(1, "max"),
        )
    assert_drawn(tmp_path / "a.png")


def test_chinese_pronoun_and_empty_translation_without_a_font(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matplotlib_figure, "WIDE_FONTS", ())
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


ANIMAL, STREET, TIRED, IT = 1, 3, 4, 7


def with_heads(*rows: dict[int, float], kind: MapKind = "encoder_self") -> Trace:
    """Each head is even, but its pronoun ("it", or "es" in the translation) gives these weights to
    source pieces."""
    trace = make_trace((*ENGLISH[:STREET], "▁street", *ENGLISH[STREET + 1 :]))
    queries = trace.source_pieces if kind == "encoder_self" else trace.target_pieces
    pronoun = (
        IT if kind == "encoder_self" else next(n for n, text in enumerate(queries) if text == "▁es")
    )
    weights = np.full((len(rows), len(queries), len(ENGLISH)), 1 / len(ENGLISH))
    for head, row in enumerate(rows):
        weights[head, pronoun] = 0.0
        for place, weight in row.items():
            weights[head, pronoun, place] = weight
    even = np.full((1, len(ENGLISH), len(ENGLISH)), 1 / len(ENGLISH))
    below = () if kind == "encoder_self" else (AttentionMap("e", "encoder_self", 0, even),)
    return dataclasses.replace(trace, maps=(*below, AttentionMap("a", kind, 0, weights)))


@pytest.mark.parametrize("kind", ["encoder_self", "cross"])
def test_the_head_that_looks_at_the_noun_that_is_meant(kind: MapKind) -> None:
    def find(first: list[dict[int, float]], second: list[dict[int, float]]) -> LayerHead:
        traces = [with_heads(*first, kind=kind), with_heads(*second, kind=kind)]
        return find_antecedent_head(traces, "it", antecedents=("animal", "street"), kind=kind)

    # Head 0 changes most, from the last word to the street; head 1 follows the nouns; head 2 does
    # it more weakly.
    first = [{TIRED: 1.0}, {ANIMAL: 0.9, STREET: 0.1}, {ANIMAL: 0.5, TIRED: 0.5}]
    second = [{STREET: 1.0}, {ANIMAL: 0.38, STREET: 0.40, TIRED: 0.22}, {STREET: 0.5, TIRED: 0.5}]
    assert find(first, second) == LayerHead(0, 1, resolves=True)
    # Nouns that hardly count, or one of them in both sentences, are no answer.
    weak = [{TIRED: 0.93, ANIMAL: 0.07}], [{TIRED: 0.93, STREET: 0.07}]
    one_sided = [{STREET: 0.9, ANIMAL: 0.1}], [{STREET: 1.0}]
    tied = [{STREET: 0.5, ANIMAL: 0.5}], [{STREET: 1.0}]
    for rows in (weak, one_sided, tied):
        assert find(*rows) == LayerHead(resolves=False)


def test_a_noun_that_is_absent_leaves_nothing_to_find() -> None:
    traces = [with_heads({ANIMAL: 1.0}), with_heads({STREET: 1.0})]
    found = find_antecedent_head(traces, "it", antecedents=("animal", "river"), kind="encoder_self")
    assert found == LayerHead(resolves=False)


def test_the_picture_says_that_no_head_resolves_the_pronoun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(
        pronoun_picture,
        "save_figure",
        lambda figure, path: written.extend(t.get_text() for t in figure.axes[0].texts),
    )
    draw_pronoun_picture([sharp_trace()], tmp_path / "a.png", read=LayerHead(0, resolves=False))
    assert any("no head attends to the right noun in both sentences" in text for text in written)
