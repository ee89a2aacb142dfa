"""Draws what a pronoun attends to, in two sentences that differ in one word.

In "The animal didn't cross the street because it was too tired / too wide" the last word decides
what "it" refers to. A translator into German has to know, because the animal is "es" and the street
is "sie". The picture shows two rows of attention; a link is wider the larger its weight:

    above:  A[it, word] of encoder self-attention      while the pronoun is read
    below:  A[es or sie, word] of cross-attention      while its translation is written

It shows the heads that attend to the right noun: the animal in one sentence, the street in the
other. If no head does that, the picture says so and shows the mean of the last layer. Such pairs
are called Winograd schemas (Levesque et al., 2012); this one was used to present the Transformer to
the public (Uszkoreit, Google research blog, 2017).

Tested against: the number and widths of arcs for hand-made weights, and pixels; an absent word is
refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwise.errors import UsageError
from headwise.explorer.data.attention_maps import (
    HeadChoice,
    MapKind,
    Trace,
    choose_head,
    describe_head,
    describe_layer,
)
from headwise.explorer.data.word_grouping import (
    group_pieces,
    is_mark,
    is_punctuation,
    is_wide,
    merge_weights,
)
from headwise.explorer.pictures.matplotlib_figure import (
    DOTS_PER_INCH,
    FRAME,
    INK,
    MUTED,
    WIDTH_INCHES,
    Fonts,
    Labels,
    explain_missing,
    find_fonts,
    make_labels,
    new_figure,
    save_figure,
    set_plain_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRONOUNS = ("es", "er", "sie", "ihn", "ihm", "它", "他", "她", "it", "he", "she")
LINK, ANSWER, MARK = "#2166ac", "#b35806", "#fde9b8"
WIDTH = WIDTH_INCHES * 72.0  # the drawing is laid out in points, the unit of font sizes
MARGIN, BAND, HEADER, FOOTER = 26.0, 218.0, 70.0, 26.0
TRANSLATION_DEPTH = 96.0
LARGEST, GAP, WIDE_GAP = 13.0, 8.0, 15.0  # a Chinese word is narrower than the number below it
SMALLEST_LINK = 0.02
RESOLVED = 0.1
"""The least weight on the right noun for which a head counts as attending to it."""


@dataclass(frozen=True)
class PronounRow:
    """One sentence of the picture: its words, the position of the pronoun, and its weights on each
    word.
    """

    words: tuple[str, ...]
    pronoun: int
    weights: NDArray[np.float64]
    translation: tuple[str, ...]
    marked: tuple[int, ...]
    answer: NDArray[np.float64] | None
    """The weights of the first marked word of the translation on each source word."""

    def look_at(self, nouns: Sequence[str], *, written: bool) -> list[float]:
        """The weight on each of these source words; empty if one is absent or no pronoun was
        written.
        """
        weights = self.answer if written else self.weights
        words = [word.casefold() for word in self.words]
        if weights is None or any(noun.casefold() not in words for noun in nouns):
            return []
        return [float(weights[words.index(noun.casefold())]) for noun in nouns]


@dataclass(frozen=True)
class LayerHead:
    """A head of a layer; layer -1 is the highest."""

    layer: int = -1
    head: HeadChoice = "mean"
    resolves: bool | None = None
    """Whether the head attends to the right noun; None if that was not examined."""


def pronoun_row(
    trace: Trace, word: str, *, read: LayerHead, written: LayerHead, marks: Sequence[str] = PRONOUNS
) -> PronounRow:
    """The values of one sentence; the last occurrence of the word counts."""
    words = group_pieces(trace.source_pieces)
    places = [
        place
        for place, text in enumerate(words.text)
        if text.casefold() == word.casefold() and not is_mark(text)
    ]
    if not places:
        raise UsageError(
            f"the word {word!r} is not in the sentence {trace.source_text!r}; choose one of its "
            "words",
            f"句子 {trace.source_text!r} 中没有词 {word!r}；请选择其中的词",
        )
    merged = merge_weights(trace.map_of("encoder_self", layer=read.layer).weights, words, words)
    targets = group_pieces(trace.target_pieces)
    translation = tuple(text for text in targets.text if not is_mark(text))
    wanted = {mark.casefold() for mark in marks}
    marked = tuple(place for place, text in enumerate(translation) if text.casefold() in wanted)
    answer = None
    if marked and any(item.kind == "cross" for item in trace.maps):
        across = merge_weights(trace.map_of("cross", layer=written.layer).weights, targets, words)
        answer = choose_head(across, written.head)[targets.text.index(translation[marked[0]])]
    return PronounRow(
        words.text,
        places[-1],
        choose_head(merged, read.head)[places[-1]],
        translation,
        marked,
        answer,
    )


def find_antecedent_head(
    traces: Sequence[Trace], word: str, *, antecedents: Sequence[str], kind: MapKind
) -> LayerHead:
    """The head whose pronoun looks most at the right noun; `antecedents` names it for each
    sentence.

    The weights of `encoder_self` are those of the pronoun itself, the weights of `cross` those of
    its translation. A head resolves the pronoun if the right noun has, in every sentence, at least
    `RESOLVED` of the weight and more than each of the other nouns. If no head does, the result is
    the mean of the last layer with `resolves` false.
    """
    best, most = LayerHead(resolves=False), 0.0
    for attention in traces[0].maps_of(kind):
        for head in range(len(attention.weights)):
            place = LayerHead(attention.layer, head, resolves=True)
            read, written = (place, LayerHead()) if kind == "encoder_self" else (LayerHead(), place)
            rows = [pronoun_row(trace, word, read=read, written=written) for trace in traces]
            looks = [row.look_at(antecedents, written=kind == "cross") for row in rows]
            if all(_is_meant(look, number) for number, look in enumerate(looks)):
                total = sum(look[number] for number, look in enumerate(looks))
                best, most = (place, total) if total > most else (best, most)
    return best


def _is_meant(look: Sequence[float], number: int) -> bool:
    """Whether the noun with this number has enough weight, and more than each of the others."""
    others = [weight for place, weight in enumerate(look) if place != number]
    return bool(look) and look[number] >= max(RESOLVED, *others) and look[number] not in others


def draw_pronoun_picture(
    traces: Sequence[Trace],
    path: Path | str,
    *,
    word: str = "it",
    read: LayerHead = LayerHead(),
    written: LayerHead = LayerHead(),
    marks: Sequence[str] = PRONOUNS,
) -> None:
    """Two (or more) sentences stacked, the links of one word in each, the translation below with
    `marks` marked.
    """
    if not traces:
        raise UsageError(
            "there is no trace to draw; give at least one", "没有可画的轨迹；请至少给出一条"
        )
    fonts = find_fonts()
    rows = [pronoun_row(trace, word, read=read, written=written, marks=marks) for trace in traces]
    height = HEADER + BAND * len(rows) + FOOTER
    figure = new_figure(height=height / 72.0)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(0, height))
    axes.set_axis_off()
    shown_word = f"“{word}”" if fonts.can_draw(word) else "the pronoun"
    title = fonts.say(
        f"What {shown_word} attends to, and what its translation attends to",
        f"{shown_word}关注哪些词，译文的代词又关注哪些词",
    )
    axes.text(MARGIN, height - 28, title, fontsize=15, color=INK)
    _write_legend(axes, traces[0], fonts, height=height, read=read, written=written)
    missing = [
        label
        for number, row in enumerate(rows)
        for label in _draw_row(axes, row, fonts, top=height - HEADER - BAND * number)
    ]
    caption = explain_missing(missing) or fonts.say(
        "The wider a link, the larger the weight. Attention is a hint, not an explanation.",
        "连线越粗，权重越大。注意力只是线索，不是解释。",
    )
    axes.text(MARGIN, 14, caption, fontsize=8.5, color=MUTED)
    set_plain_text(axes.texts, fonts)
    save_figure(figure, Path(path))


def _write_legend(
    axes: "Axes", trace: Trace, fonts: Fonts, *, height: float, read: LayerHead, written: LayerHead
) -> None:
    """One line for each kind of attention: which layer and head the links show."""
    kinds: tuple[tuple[str, LayerHead, MapKind, str, str], ...] = (
        (LINK, read, "encoder_self", "above: encoder self-attention", "上：编码器自注意力"),
        (
            ANSWER,
            written,
            "cross",
            "below: cross-attention while the pronoun is written",
            "下：写出代词时的交叉注意力",
        ),
    )
    for line, (colour, place, kind, en, zh) in enumerate(kinds):
        if any(item.kind == kind for item in trace.maps):
            layer = describe_layer(trace.map_of(kind, layer=place.layer).layer)
            which = describe_head(place.head)
            where = fonts.say(f"{en}, {layer[0]}, {which[0]}", f"{zh}，{layer[1]}，{which[1]}")
            if place.resolves is False:
                where = fonts.say(
                    f"{en.split(' while ')[0]}: no head attends to the right noun in "
                    f"both sentences; shown: {layer[0]}, {which[0]}",
                    f"{zh}：没有哪个头在两句中都关注正确的名词；所示为{layer[1]}，{which[1]}",
                )
            axes.text(MARGIN, height - 46 - 14 * line, where, fontsize=9.5, color=colour)


def _draw_row(axes: "Axes", row: PronounRow, fonts: Fonts, *, top: float) -> tuple[Labels, Labels]:
    """One sentence between `top` and `top - BAND`: arcs, words with weights, translation. Returns
    the labels of words and translation.
    """
    words, translation = make_labels(row.words, fonts), make_labels(row.translation, fonts)
    shown = [place for place, text in enumerate(row.words) if not is_mark(text)]
    base = top - 92
    texts = tuple(words.texts[place] for place in shown)
    centres, size = _write_line(axes, texts, fonts, y=base, emphasised={shown.index(row.pronoun)})
    x_of = dict(zip(shown, centres, strict=True))
    for place in shown:
        weight = float(row.weights[place])
        if place != row.pronoun and weight >= SMALLEST_LINK:
            _draw_arc(axes, x_of[row.pronoun], x_of[place], y=base + size + 2, weight=weight)
            axes.text(
                _label_x(x_of[place], row.words[place]),
                base - 13,
                f"{weight:.2f}",
                ha="center",
                fontsize=8,
                color=LINK,
            )
    elsewhere = float(
        sum(row.weights[place] for place in range(len(row.words)) if place not in shown)
    )
    rest = fonts.say(
        f"on itself {row.weights[row.pronoun]:.2f}, on the end mark {elsewhere:.2f}",
        f"自身 {row.weights[row.pronoun]:.2f}，句末符号 {elsewhere:.2f}",
    )
    axes.text(WIDTH - MARGIN, top - 14, rest, ha="right", fontsize=8, color=MUTED)
    places, letters = _write_line(
        axes, translation.texts, fonts, y=base - TRANSLATION_DEPTH, emphasised=set(row.marked)
    )
    if row.answer is not None:
        for place in shown:
            weight = float(row.answer[place])
            if weight >= SMALLEST_LINK:
                ends = (
                    (places[row.marked[0]], base - TRANSLATION_DEPTH + letters + 4),
                    (x_of[place], base - 30),
                )
                _draw_line(axes, *ends, weight=weight)
                x = _label_x(x_of[place], row.words[place])
                axes.text(x, base - 25, f"{weight:.2f}", ha="center", fontsize=8, color=ANSWER)
    axes.plot([MARGIN, WIDTH - MARGIN], [top - BAND + 8] * 2, color=FRAME, linewidth=0.6)
    return words, translation


def _label_x(centre: float, word: str) -> float:
    """The x of a weight. A full stop is narrower than its number, which is moved so as not to touch
    the next one.
    """
    return centre + 11.0 if is_punctuation(word) else centre


def _write_line(
    axes: "Axes", texts: Sequence[str], fonts: Fonts, *, y: float, emphasised: set[int]
) -> tuple[list[float], float]:
    """Write words side by side, as large as the width allows. Returns their centres and the font
    size.
    """
    if not texts:  # the translation is empty
        return [], LARGEST
    boxed = {"facecolor": MARK, "edgecolor": LINK, "boxstyle": "round,pad=0.22", "linewidth": 0.8}
    written = [
        axes.text(0.0, y, text, ha="center", va="baseline", color=INK, fontsize=LARGEST)
        for text in texts
    ]
    set_plain_text(written, fonts)
    to_points = 72.0 / DOTS_PER_INCH
    widths = [max(text.get_window_extent().width * to_points, LARGEST / 3) for text in written]
    gaps = [0.0 if is_punctuation(text) else WIDE_GAP if is_wide(text) else GAP for text in texts]
    scale = min(1.0, (WIDTH - 2 * MARGIN) / (sum(widths) + sum(gaps[1:])))
    centres, x = [], MARGIN - scale * gaps[0]
    for place, (text, width) in enumerate(zip(written, widths, strict=True)):
        x += scale * gaps[place]
        centres.append(x + scale * width / 2)
        text.set_x(centres[-1])
        text.set_fontsize(scale * LARGEST)
        if place in emphasised:
            text.set_bbox(boxed)
        x += scale * width
    return centres, scale * LARGEST


def _draw_arc(axes: "Axes", start: float, end: float, *, y: float, weight: float) -> None:
    """Half an ellipse from the pronoun to a word; arcs to distant words are higher, within the
    band.
    """
    from matplotlib.patches import Arc

    height = min(20 + 0.22 * abs(end - start), 66.0)
    arc = Arc(
        ((start + end) / 2, y), abs(end - start), 2 * height, theta1=0, theta2=180, color=LINK
    )
    arc.set_linewidth(0.6 + 7.0 * weight)
    arc.set_alpha(min(0.25 + 0.75 * weight, 1.0))
    axes.add_patch(arc)


def _draw_line(
    axes: "Axes", start: tuple[float, float], end: tuple[float, float], *, weight: float
) -> None:
    """A straight link from the translated pronoun up to a source word."""
    axes.plot(
        [start[0], end[0]],
        [start[1], end[1]],
        color=ANSWER,
        linewidth=0.6 + 7.0 * weight,
        alpha=min(0.25 + 0.75 * weight, 1.0),
        solid_capstyle="round",
    )
