"""Draws the occurrences of an ambiguous word as points, coloured by sense, one panel per model.

A model that tells the senses apart shows one cloud for each sense. Coordinates come from PCA or
t-SNE (data/plane_projection.py) of the vectors, scaled to length 1. A static vector is the same in
every sentence: all its points coincide and are drawn as rings in the colours of all senses, and the
panel says so.

Tested against: the panels and points that must be there; a static panel has one position.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from headwise.errors import UsageError
from headwise.explorer.data.plane_projection import project_pca, project_tsne
from headwise.explorer.pictures.matplotlib_figure import (
    FRAME,
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

MAX_POINTS = 600
COLOURS = ("#1f5fa8", "#c9501c", "#2d8a4e", "#8a4fa3", "#7a6a1f", "#b3266b", "#3b8f9c", "#5b6470")
"""Distinct in print and for most colour-blind readers; each sense also has its own marker."""
MARKS = ("o", "^", "s", "D", "v", "P", "X", "*")


def draw_sense_map(
    word: str,
    senses: Sequence[str],
    panels: Mapping[str, np.ndarray],
    path: Path,
    *,
    method: Literal["pca", "tsne"] = "tsne",
) -> tuple[str, ...]:
    """Draw the picture. `panels` holds the vectors of each model, one row for each occurrence, and
    `senses` the sense of each occurrence.

    Returns the senses that the labels 1, 2, … stand for if no font could draw them, else nothing.
    """
    fonts = find_fonts()
    from matplotlib.collections import PathCollection

    if len(senses) < 2:
        raise UsageError(
            f"{word!r} occurs {len(senses)} time(s) in the test part; a picture needs at least 2",
            f"{word!r} 在测试部分出现 {len(senses)} 次；画图至少需要 2 次",
        )
    # Evenly spaced over the occurrences, so that every sense keeps its share.
    shown = np.unique(np.linspace(0, len(senses) - 1, min(MAX_POINTS, len(senses))).astype(int))
    kept = [senses[number] for number in shown]
    names = sorted(set(kept), key=lambda name: -kept.count(name))
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = new_figure(height=4.2 * rows + 0.8)
    plain = tuple(name.removeprefix(f"{word}_") for name in names)
    labels = make_labels(plain, fonts)
    texts = [
        figure.suptitle(
            fonts.say(f"{word}: {len(kept)} occurrences", f"{word}：出现 {len(kept)} 次")
        )
    ]
    for number, (model, vectors) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(rows, columns, number)
        places = place_points(vectors[shown], method=method)
        together = _draw_points(axes, places, kept, names, labels.texts)
        title = model if not together else f"{model}: {fonts.say('one point', '同一个点')}"
        texts.append(axes.set_title(title, fontsize=10))
        if number == 1:
            legend = axes.legend(fontsize=8, frameon=False)
            for handle in legend.findobj(PathCollection):
                handle.set_sizes([30])  # coinciding rings differ in size, the legend does not
            texts += legend.get_texts()
    if note := explain_missing([labels], instead="The command prints what they stand for."):
        texts.append(figure.supxlabel(note, fontsize=8))
    set_plain_text(texts, fonts)
    save_figure(figure, path)
    return plain if labels.missing else ()


def place_points(vectors: np.ndarray, *, method: Literal["pca", "tsne"]) -> np.ndarray:
    """Two coordinates a row; equal vectors have the same coordinates."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(lengths == 0, 1, lengths)
    if np.allclose(unit, unit[0], atol=1e-6):
        return np.zeros((len(unit), 2))
    return project_pca(unit) if method == "pca" else project_tsne(unit, perplexity=30.0)


def _draw_points(
    axes: "Axes",
    places: np.ndarray,
    senses: Sequence[str],
    names: Sequence[str],
    texts: Sequence[str],
) -> bool:
    """Draw the points of one panel; returns whether all of them coincide."""
    together = bool(np.ptp(places, axis=0).max() == 0)
    of = np.array(senses)
    for number, (name, text) in enumerate(zip(names, texts, strict=True)):
        here = places[of == name]
        size = 40 * (1 + 4 * number) if together else 14
        axes.scatter(
            here[:1, 0] if together else here[:, 0],
            here[:1, 1] if together else here[:, 1],
            s=size,
            marker=MARKS[number % len(MARKS)],
            facecolors="none" if together else COLOURS[number % len(COLOURS)],
            edgecolors=COLOURS[number % len(COLOURS)],
            linewidths=1.5 if together else 0,
            alpha=1 if together else 0.75,
            label=f"{text} ({len(here)})",
        )
    axes.set_xticks([])
    axes.set_yticks([])
    axes.margins(0.1)
    for side in axes.spines.values():
        side.set_color(FRAME)
    axes.tick_params(colors=MUTED)
    return together
