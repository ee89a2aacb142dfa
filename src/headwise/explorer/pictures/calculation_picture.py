"""Draws the three steps of attention side by side, with numbers in the cells (`headwise attend`).

The steps are the scores, weights and outputs of data/attention_calculation.py. If keys and values
are single numbers, a curve below shows the output for every query: attention interpolates between
the values.

Tested against: size, warnings as errors, nothing at the edge, both languages.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwise.attention.score_choices import LocalMonotonicSettings
from headwise.explorer.data.attention_calculation import AttentionCalculation, output_curve
from headwise.explorer.data.calculation_tables import describe_score, describe_weights, name_vector
from headwise.explorer.pictures.matplotlib_figure import (
    FRAME,
    INK,
    MUTED,
    Fonts,
    find_fonts,
    new_figure,
    save_figure,
    set_plain_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation
    from matplotlib.transforms import BboxBase

MAX_NUMBERED = 8
"""Tables with more rows or columns are drawn without numbers and names."""
LINE, POINT = "#31688e", "#d1495b"
DIAMOND = 70
"""The area of a query's marker, in square points."""
PLACES = tuple(
    (right, up, away) for away in (1, 2) for right, up in ((1, -1), (-1, 1), (1, 1), (-1, -1))
)
"""Positions of a query's label, the best first: right or left, above or below, near or farther."""


def draw_calculation(worked: AttentionCalculation, path: Path | str) -> None:
    """Draw a PNG about 1200 pixels wide."""
    from matplotlib.text import Text

    fonts = find_fonts()
    has_curve = worked.keys.shape[1] == worked.values.shape[1] == worked.queries.shape[1] == 1
    # A monotonic window depends on the number of the query in the table, which queries between
    # them do not have.
    has_curve = has_curve and not isinstance(worked.settings.window, LocalMonotonicSettings)
    num_queries = len(worked.queries)
    height = 1.9 + 0.45 * min(num_queries, 16)
    figure = new_figure(height=height + (3.2 if has_curve else 0))
    parts = (
        list(figure.subfigures(2, 1, height_ratios=[height, 3.2], squeeze=False)[:, 0])
        if has_curve
        else [figure]
    )
    panels = parts[0].subplots(
        1, 3, width_ratios=[*([min(len(worked.keys), 16)] * 2), min(worked.values.shape[1], 16)]
    )
    queries, keys = (
        [name_vector(row) for row in table.tolist()] for table in (worked.queries, worked.keys)
    )
    columns = [str(number) for number in range(1, worked.values.shape[1] + 1)]
    titles = (
        fonts.say("1  scores", "1  分数"),
        fonts.say("2  weights", "2  权重"),
        fonts.say("3  outputs", "3  输出"),
    )
    tables = (worked.scores, worked.weights, worked.outputs)
    for axes, title, table, names in zip(
        panels, titles, tables, (keys, keys, columns), strict=True
    ):
        _draw_table(axes, table.numpy(), names, is_share=table is worked.weights)
        axes.set_title(title, fontsize=12, color=INK, loc="left")
    panels[0].set_yticks(
        range(num_queries), queries if num_queries <= MAX_NUMBERED else [""] * num_queries
    )
    panels[0].set_ylabel(fonts.say("query", "查询"), color=MUTED, fontsize=10)
    for axes, name in zip(panels, (("key", "键"), ("key", "键"), ("column", "列")), strict=True):
        axes.set_xlabel(fonts.say(*name), color=MUTED, fontsize=10)
    labels = [_draw_curve(part.subplots(), worked, fonts) for part in parts[1:]]
    how = f"{describe_score(worked)}   ·   {describe_weights(worked, tell=fonts.say)}"
    figure.suptitle(
        how if fonts.can_draw(how) else worked.settings.score.kind, fontsize=12, color=INK
    )
    set_plain_text(figure.findobj(Text), fonts)
    for annotations in labels:
        figure.draw_without_rendering()  # fixes the scale that labels are placed by
        _place_labels(annotations, worked)
    save_figure(figure, Path(path))


def _draw_table(
    axes: "Axes", table: NDArray[np.float64], names: list[str], *, is_share: bool
) -> None:
    low, high = (0.0, 1.0) if is_share else (float(table.min()), float(table.max()))
    axes.imshow(
        table, cmap="Blues", vmin=low, vmax=low + 1.6 * (max(high - low, 1e-9)), aspect="auto"
    )
    few = max(table.shape) <= MAX_NUMBERED
    if few:
        for (row, column), value in np.ndenumerate(table):
            text = f"{value:.3f}" if is_share else f"{value + 0.0:.5g}"
            axes.text(column, row, text, ha="center", va="center", fontsize=9, color=INK)
    axes.set_xticks(range(len(names)), names if few else [""] * len(names), fontsize=9, color=INK)
    axes.set_yticks([])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_edgecolor(FRAME)


def _draw_curve(axes: "Axes", worked: AttentionCalculation, fonts: Fonts) -> list["Annotation"]:
    """Circles are keys with their values, as large as the first query's weights; the line is the
    output for every query.

    Returns the labels of the queries; they are placed when the scale of the picture is fixed.
    """
    keys, values, queries = (
        table[:, 0].numpy() for table in (worked.keys, worked.values, worked.queries)
    )
    both = np.concatenate([keys, queries])
    margin = max(0.08 * (both.max() - both.min()), 0.5)
    line = np.linspace(both.min() - margin, both.max() + margin, 241)
    axes.plot(line, output_curve(worked, line.tolist()), color=LINE, linewidth=1.5, zorder=1)
    axes.scatter(keys, values, s=_areas(worked), color=LINE, alpha=0.55, zorder=2)
    axes.scatter(
        queries, worked.outputs[:, 0].numpy(), s=DIAMOND, color=POINT, marker="D", zorder=3
    )
    labels = [
        axes.annotate(
            f"{query:.6g} → {output:.5g}", (query, output), (0, 0), textcoords="offset points"
        )
        for query, output in zip(
            queries[:MAX_NUMBERED], worked.outputs[:MAX_NUMBERED, 0].tolist(), strict=True
        )
    ]
    for label in labels:
        label.set(color=INK, fontsize=10, in_layout=False)
    axes.margins(y=0.2)  # space for the lowest label
    axes.set_xlabel(
        fonts.say(
            "circles: key and value, by their weight for the first query; diamonds: queries; "
            "line: any query",
            "圆：键与值，大小为第一个查询给的权重；菱形：查询；曲线：任意查询",
        ),
        color=MUTED,
        fontsize=9,
    )
    axes.tick_params(colors=MUTED, labelsize=9)
    for spine in axes.spines.values():
        spine.set_edgecolor(FRAME)
    return labels


def _areas(worked: AttentionCalculation) -> NDArray[np.float64]:
    """The areas of the circles, in square points."""
    return 30 + 220 * worked.weights[0].numpy()


def _place_labels(labels: list["Annotation"], worked: AttentionCalculation) -> None:
    """Put each label beside its diamond, at the first position inside the frame that covers no
    circle, diamond or earlier label, or else at the one that covers the fewest.
    """
    from matplotlib.transforms import Bbox

    if not labels:
        return
    axes = labels[0].axes
    assert axes is not None, "drawn in them"
    dots = axes.figure.dpi / 72
    frame = axes.get_window_extent()
    keys = np.column_stack([worked.keys[:, 0].numpy(), worked.values[:, 0].numpy()])
    queries = np.column_stack([worked.queries[:, 0].numpy(), worked.outputs[:, 0].numpy()])
    places = axes.transData.transform(np.concatenate([keys, queries]))
    radii = np.sqrt(np.concatenate([_areas(worked), np.full(len(queries), DIAMOND)])) / 2 * dots
    taken: list[BboxBase] = [
        Bbox.from_extents(*(place - radius), *(place + radius))
        for place, radius in zip(places, radii, strict=True)
    ]
    for label in labels:
        ranked = []
        for number, place in enumerate(PLACES):
            box = _put(label, place)
            inside = frame.x0 < box.x0 < box.x1 < frame.x1 and frame.y0 < box.y0 < box.y1 < frame.y1
            ranked.append((not inside, sum(box.overlaps(other) for other in taken), number))
        taken.append(_put(label, PLACES[min(ranked)[-1]]))


def _put(label: "Annotation", place: tuple[int, int, int]) -> "BboxBase":
    """Move a label and return where it then lies in the picture, in dots."""
    right, up, away = place
    label.set(position=(10 * right * away, 4 * up * away**2))
    label.set(ha="left" if right > 0 else "right", va="bottom" if up > 0 else "top")
    return label.get_window_extent()
