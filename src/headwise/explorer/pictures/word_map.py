"""Draws a map of words: a point and a label for each word vector, similar words near each other.

The two coordinates come from PCA or t-SNE (data/plane_projection.py). A label is left out where it
would cover another one.

Tested with Chinese labels, with and without a font that has their characters.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from headwise.errors import UsageError
from headwise.explorer.data.plane_projection import project_pca, project_tsne
from headwise.explorer.pictures.matplotlib_figure import (
    FRAME,
    INK,
    MUTED,
    explain_missing,
    find_fonts,
    make_labels,
    new_figure,
    save_figure,
    set_plain_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

MAX_WORDS = 1000
ACCENT = "#b3261e"


def draw_word_map(
    words: Sequence[str],
    vectors: np.ndarray,
    path: Path,
    *,
    method: Literal["pca", "tsne"] = "tsne",
    marked: Sequence[str] = (),
) -> tuple[str, ...]:
    """Draw a point and a label for each word; `marked` words are red.

    Returns the words that the labels 1, 2, … stand for if no font could draw them, else nothing.
    """
    if not 2 <= len(words) <= MAX_WORDS:
        raise UsageError(
            f"a map of {len(words):,} words was asked for; give 2 to {MAX_WORDS:,}",
            f"要求画 {len(words):,} 个词；请给出 2 到 {MAX_WORDS:,} 个",
        )
    places = project_pca(vectors) if method == "pca" else project_tsne(vectors)
    fonts = find_fonts()
    labels = make_labels(words, fonts)
    figure = new_figure(height=7.0)
    axes = figure.add_subplot()
    red = set(marked)
    colours = [ACCENT if word in red else MUTED for word in words]
    axes.scatter(places[:, 0], places[:, 1], s=10, c=colours, linewidths=0)
    axes.margins(0.08)
    figure.draw_without_rendering()  # fixes the scale that labels are placed by
    texts = _place_labels(
        axes, places, labels.texts, [ACCENT if word in red else INK for word in words]
    )
    title = axes.set_title(
        fonts.say(f"{len(words)} words, {method.upper()}", f"{len(words)} 个词，{method.upper()}")
    )
    texts.append(title)
    if note := explain_missing([labels], instead="The command prints what they stand for."):
        texts.append(axes.set_xlabel(note, fontsize=8))
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_color(FRAME)
    set_plain_text(texts, fonts)
    save_figure(figure, path)
    return tuple(words) if labels.missing else ()


def _place_labels(
    axes: "Axes", places: np.ndarray, texts: Sequence[str], colours: Sequence[str]
) -> list["Text"]:
    """Put each label beside its point, at the first of eight positions where it covers no earlier
    label; without such a position it is left out.
    """
    size = float(np.clip(10 - len(texts) / 60, 6, 9))
    to_dots = axes.transData.transform(places)
    taken: list[tuple[float, float, float, float]] = []
    written = []
    for number, text in enumerate(texts):
        wide = sum(2 if ord(character) > 0x2E7F else 1.15 for character in text)
        width, height = wide * size * 0.55 * 150 / 72, size * 1.25 * 150 / 72
        x, y = to_dots[number]
        for right, up in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)):
            left = x + (6 if right > 0 else -6 - width if right < 0 else -width / 2)
            bottom = y + (5 if up > 0 else -5 - height if up < 0 else -height / 2)
            box = (left, bottom, left + width, bottom + height)
            if not any(
                box[0] < o[2] and o[0] < box[2] and box[1] < o[3] and o[1] < box[3] for o in taken
            ):
                taken.append(box)
                spot = axes.transData.inverted().transform((left, bottom + height / 2))
                written.append(
                    axes.text(
                        spot[0],
                        spot[1],
                        text,
                        fontsize=size,
                        color=colours[number],
                        va="center",
                        ha="left",
                    )
                )
                break
    return written
