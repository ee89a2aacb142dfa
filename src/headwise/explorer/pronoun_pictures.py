"""Where a pronoun looks: two sentences that differ in one word, and the links from "it" in each.

"The animal didn't cross the street because it was too tired / too wide": what "it" stands for hangs on the last word,
and a translator into German must know, for the animal is "es" and the street "sie". The picture shows the row of
encoder self-attention that belongs to the pronoun,

    link(word) = A[it, word], drawn as an arc whose width and strength grow with the weight,

and below each sentence its translation with the pronoun marked. Such pairs are called Winograd schemas
(Levesque et al., 2012); this one presented the Transformer to the public (Uszkoreit, Google research blog, 2017).

Tested against: the number and widths of arcs for hand-made weights, and pixels; a word that is absent is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwise.errors import UsageError
from headwise.explorer.drawing import (
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
    write_plainly,
)
from headwise.explorer.traces import HeadChoice, Trace, choose_head, describe_head
from headwise.explorer.words import group_pieces, is_mark, is_punctuation, is_wide, merge_weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRONOUNS = ("es", "er", "sie", "ihn", "ihm", "它", "他", "她")
LINK, MARK = "#2166ac", "#fde9b8"
WIDTH = WIDTH_INCHES * 72.0  # the drawing is laid out in points, in which fonts are measured too
MARGIN, BAND, HEADER, FOOTER = 26.0, 176.0, 56.0, 26.0
LARGEST, GAP, NARROW_GAP = 13.0, 8.0, 4.0
SMALLEST_LINK = 0.02


@dataclass(frozen=True)
class PronounRow:
    """One sentence for the picture: its words, which of them is the pronoun, and the weights it gives to each."""

    words: tuple[str, ...]
    pronoun: int
    weights: NDArray[np.float64]
    translation: tuple[str, ...]
    marked: tuple[int, ...]


def pronoun_row(trace: Trace, word: str, *, layer: int, head: HeadChoice, marks: Sequence[str]) -> PronounRow:
    """Take from a trace what the picture shows; the last occurrence of the word counts."""
    words = group_pieces(trace.source_pieces)
    places = [
        place for place, text in enumerate(words.text) if text.casefold() == word.casefold() and not is_mark(text)
    ]
    if not places:
        raise UsageError(
            f"the word {word!r} is not in the sentence {trace.source_text!r}; choose one of its words",
            f"句子 {trace.source_text!r} 中没有词 {word!r}；请选择其中的词",
        )
    merged = merge_weights(trace.map_of("encoder_self", layer=layer).weights, words, words)
    translation = tuple(text for text in group_pieces(trace.target_pieces).text if not is_mark(text))
    wanted = {mark.casefold() for mark in marks}
    marked = tuple(place for place, text in enumerate(translation) if text.casefold() in wanted)
    return PronounRow(words.text, places[-1], choose_head(merged, head)[places[-1]], translation, marked)


def most_changed_head(traces: Sequence[Trace], word: str) -> tuple[int, int]:
    """The layer and head of encoder self-attention in which the word's look differs most between two sentences.

    The sentences must have the same words but one, so that their weights can be compared place by place.
    """
    first, second = traces
    found: list[tuple[float, int, int]] = []
    for attention in first.maps_of("encoder_self"):
        for head in range(len(attention.weights)):
            rows = [pronoun_row(trace, word, layer=attention.layer, head=head, marks=()) for trace in (first, second)]
            if len(rows[0].weights) != len(rows[1].weights):
                raise UsageError(
                    f"the sentences have {len(rows[0].weights)} and {len(rows[1].weights)} words; give two that differ in one word",
                    f"两句分别有 {len(rows[0].weights)} 与 {len(rows[1].weights)} 个词；请给出只差一个词的两句",
                )
            found.append((float(np.abs(rows[0].weights - rows[1].weights).sum()), attention.layer, head))
    return max(found)[1:]


def draw_pronoun_picture(
    traces: Sequence[Trace],
    path: Path | str,
    *,
    word: str = "it",
    layer: int = -1,
    head: HeadChoice = "mean",
    marks: Sequence[str] = PRONOUNS,
) -> None:
    """Two (or more) sentences stacked, the links of one word in each, the translation below with `marks` marked."""
    if not traces:
        raise UsageError("there is no trace to draw; give at least one", "没有可画的轨迹；请至少给出一条")
    fonts = find_fonts()
    rows = [pronoun_row(trace, word, layer=layer, head=head, marks=marks) for trace in traces]
    height = HEADER + BAND * len(rows) + FOOTER
    figure = new_figure(height=height / 72.0)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(0, height))
    axes.set_axis_off()
    attention_layer = traces[0].map_of("encoder_self", layer=layer).layer
    which = describe_head(head)
    shown_word = f"“{word}”" if fonts.can_draw(word) else "the pronoun"
    title = fonts.say(f"Where {shown_word} looks", f"{shown_word}在看哪里")
    where = fonts.say(
        f"encoder self-attention, layer {attention_layer}, {which[0]}",
        f"编码器自注意力，第 {attention_layer} 层，{which[1]}",
    )
    axes.text(MARGIN, height - 28, title, fontsize=15, color=INK)
    axes.text(MARGIN, height - 46, where, fontsize=9.5, color=MUTED)
    missing = [
        label
        for number, row in enumerate(rows)
        for label in _draw_row(axes, row, fonts, top=height - HEADER - BAND * number)
    ]
    caption = explain_missing(missing) or fonts.say(
        "The wider an arc, the larger the weight. Attention is a hint, not an explanation.",
        "弧线越粗，权重越大。注意力只是线索，不是解释。",
    )
    axes.text(MARGIN, 14, caption, fontsize=8.5, color=MUTED)
    write_plainly(axes.texts, fonts)
    save_figure(figure, Path(path))


def _draw_row(axes: "Axes", row: PronounRow, fonts: Fonts, *, top: float) -> tuple[Labels, Labels]:
    """One sentence between `top` and `top - BAND`: arcs, words with weights, translation."""
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
            axes.text(x_of[place], base - 13, f"{weight:.2f}", ha="center", fontsize=8, color=LINK)
    elsewhere = float(sum(row.weights[place] for place in range(len(row.words)) if place not in shown))
    rest = fonts.say(
        f"on itself {row.weights[row.pronoun]:.2f}, on the end mark {elsewhere:.2f}",
        f"自身 {row.weights[row.pronoun]:.2f}，句末符号 {elsewhere:.2f}",
    )
    axes.text(WIDTH - MARGIN, base - 27, rest, ha="right", fontsize=8, color=MUTED)
    _write_line(axes, translation.texts, fonts, y=base - 52, emphasised=set(row.marked))
    axes.plot([MARGIN, WIDTH - MARGIN], [top - BAND + 8] * 2, color=FRAME, linewidth=0.6)
    return words, translation


def _write_line(
    axes: "Axes", texts: Sequence[str], fonts: Fonts, *, y: float, emphasised: set[int]
) -> tuple[list[float], float]:
    """Write words side by side, as large as the width allows; returns their centres and the size of the letters."""
    if not texts:  # an empty translation is shown as what it is
        return [], LARGEST
    boxed = {"facecolor": MARK, "edgecolor": LINK, "boxstyle": "round,pad=0.22", "linewidth": 0.8}
    written = [axes.text(0.0, y, text, ha="center", va="baseline", color=INK, fontsize=LARGEST) for text in texts]
    write_plainly(written, fonts)
    to_points = 72.0 / DOTS_PER_INCH
    widths = [max(text.get_window_extent().width * to_points, LARGEST / 3) for text in written]
    gaps = [0.0 if is_punctuation(text) else NARROW_GAP if is_wide(text) else GAP for text in texts]
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
    """Half an ellipse from the pronoun to a word; farther words need higher arcs, within the band."""
    from matplotlib.patches import Arc

    height = min(20 + 0.22 * abs(end - start), 66.0)
    arc = Arc(((start + end) / 2, y), abs(end - start), 2 * height, theta1=0, theta2=180, color=LINK)
    arc.set_linewidth(0.6 + 7.0 * weight)
    arc.set_alpha(min(0.25 + 0.75 * weight, 1.0))
    axes.add_patch(arc)
