"""Attention weights as heat maps: one row for each query, one column for each key.

    colour(i, j) = A[i, j] on a scale from 0 to the largest weight of the picture;
                   with negative weights, from −m through 0 to m in two hues

One map is drawn large, with its words and a colour scale. A grid shows all layers and heads of one
kind, so that the habits of heads (diagonal, previous word, end of sentence, full stop) can be
compared.

Tested against: the pixels (the brightest cell is the one with the largest weight), the size, and
warnings as errors.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwise.explorer.data.attention_maps import (
    HeadChoice,
    Level,
    MapKind,
    Trace,
    choose_head,
    describe_head,
    describe_layer,
)
from headwise.explorer.data.word_grouping import group_pieces, merge_weights
from headwise.explorer.pictures.matplotlib_figure import (
    FRAME,
    INK,
    MUTED,
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
    from matplotlib.figure import Figure, SubFigure

COLOURS, SIGNED_COLOURS = "viridis", "RdBu_r"
MAX_LABELS = 64
"""With more rows or columns only every n-th is named, because labels would overlap."""
MAX_GRID_LABELS = 20
"""The small maps of a grid name their words up to this many."""
MAX_NUMBERED_CELLS = 16
"""With at most this many columns the weights are also written into the cells."""

MAX_TITLE_LENGTH = 80

KIND_NAMES: dict[MapKind, tuple[str, str]] = {
    "encoder_self": ("encoder self-attention", "编码器自注意力"),
    "decoder_self": ("decoder self-attention", "解码器自注意力"),
    "cross": ("cross-attention", "交叉注意力"),
}


def draw_heat_map(
    trace: Trace,
    path: Path | str,
    *,
    kind: MapKind,
    layer: int = -1,
    head: HeadChoice = "mean",
    level: Level = "word",
) -> None:
    """One map with its words as a PNG about 1200 pixels wide; layer -1 is the highest.

    `layer` and `head` are indices from 0; the picture counts them from 1.
    """
    fonts = find_fonts()
    attention = trace.map_of(kind, layer=layer)
    weights, queries, keys = _at_level(trace, kind, attention.weights, level=level)
    table = choose_head(weights, head)
    rows, columns = make_labels(queries, fonts), make_labels(keys, fonts)
    figure = new_figure(height=_height(len(queries), len(keys), columns))
    axes = figure.add_subplot()
    colours, low, high = _scale_of([table])
    image = axes.imshow(table, cmap=colours, vmin=low, vmax=high, aspect="auto")
    _name_cells(axes, rows, columns)
    _write_values(axes, table)
    axes.set_ylabel(_axis_name(kind, "query", fonts), color=MUTED, fontsize=10)
    axes.set_xlabel(_axis_name(kind, "key", fonts), color=MUTED, fontsize=10)
    axes.xaxis.set_label_position("top")
    scale = figure.colorbar(image, ax=axes, fraction=0.03, pad=0.02)
    scale.outline.set_edgecolor(FRAME)
    scale.ax.tick_params(labelsize=9, color=FRAME, labelcolor=MUTED)
    scale.set_label(fonts.say("attention weight", "注意力权重"), color=MUTED, fontsize=10)
    where = fonts.say(
        f"{KIND_NAMES[kind][0]}, {describe_layer(attention.layer)[0]}, {describe_head(head)[0]}",
        f"{KIND_NAMES[kind][1]}，{describe_layer(attention.layer)[1]}，{describe_head(head)[1]}",
    )
    _finish(figure, trace, where, fonts, caption=explain_missing((rows, columns)), path=Path(path))


def draw_grid(trace: Trace, path: Path | str, *, kind: MapKind, level: Level = "word") -> None:
    """All layers (rows) and heads (columns) of one kind, on one colour scale."""
    fonts = find_fonts()
    figure = new_figure(height=1.0 + _grid_height(trace, kind, level=level))
    _fill_grid(figure, trace, kind, fonts, level=level)
    where = fonts.say(
        f"{KIND_NAMES[kind][0]}, all layers and heads", f"{KIND_NAMES[kind][1]}，全部层与头"
    )
    _finish(figure, trace, where, fonts, caption=_axes_note(kind, fonts), path=Path(path))


def draw_all(trace: Trace, path: Path | str, *, level: Level = "word") -> None:
    """All attention of a translation: a grid of layers and heads for each kind."""
    fonts = find_fonts()
    kinds = [kind for kind in KIND_NAMES if any(item.kind == kind for item in trace.maps)]
    heights = [0.8 + _grid_height(trace, kind, level=level) for kind in kinds]
    figure = new_figure(height=0.8 + sum(heights))
    parts = figure.subfigures(len(kinds), 1, height_ratios=heights, squeeze=False)[:, 0]
    for part, kind in zip(parts, kinds, strict=True):
        _fill_grid(part, trace, kind, fonts, level=level)
        part.suptitle(fonts.say(*KIND_NAMES[kind]), fontsize=11, color=INK)
        part.supxlabel(_axes_note(kind, fonts), fontsize=9, color=MUTED)
    where = fonts.say("all layers and heads", "全部层与头")
    _finish(figure, trace, where, fonts, caption="", path=Path(path))


def _grid_height(trace: Trace, kind: MapKind, *, level: Level) -> float:
    maps = trace.maps_of(kind)
    _, queries, keys = _at_level(trace, kind, maps[0].weights, level=level)
    num_heads = max(len(item.weights) for item in maps)
    return len(maps) * (7.0 / num_heads * min(max(len(queries) / len(keys), 0.4), 2.5) + 0.1)


def _fill_grid(
    figure: "Figure | SubFigure", trace: Trace, kind: MapKind, fonts: Fonts, *, level: Level
) -> None:
    maps = trace.maps_of(kind)
    num_heads = max(len(item.weights) for item in maps)
    tables = [_at_level(trace, kind, item.weights, level=level)[0] for item in maps]
    colours, low, high = _scale_of(tables)
    sides = _at_level(trace, kind, maps[0].weights, level=level)[1:]
    names = [
        make_labels(side, fonts).texts if len(side) <= MAX_GRID_LABELS else () for side in sides
    ]
    grid = figure.subplots(len(maps), num_heads, squeeze=False)
    for row, attention in enumerate(maps):
        for column, axes in enumerate(grid[row]):
            if column >= len(attention.weights):
                axes.set_visible(False)
                continue
            table = tables[row][column]
            high = high if low < 0 else 1.0  # weights are at most one
            image = axes.imshow(
                table, cmap=colours, vmin=low, vmax=high, aspect="auto", interpolation="nearest"
            )
            axes.set_xticks([])
            axes.set_yticks([])
            axes.tick_params(length=0)
            _soften_frame(axes)
            if column == 0 and names[0]:
                axes.set_yticks(range(len(names[0])), names[0], fontsize=6, color=INK)
            if row == len(maps) - 1 and names[1]:
                axes.set_xticks(range(len(names[1])), names[1], fontsize=6, color=INK, rotation=90)
            if row == 0:
                axes.set_title(fonts.say(*describe_head(column)), fontsize=10, color=MUTED)
        grid[row][0].set_ylabel(
            fonts.say(*describe_layer(attention.layer)), fontsize=10, color=MUTED
        )
    scale = figure.colorbar(image, ax=grid, fraction=0.02, pad=0.015, aspect=40)
    scale.outline.set_edgecolor(FRAME)
    scale.ax.tick_params(labelsize=9, color=FRAME, labelcolor=MUTED)


def _axes_note(kind: MapKind, fonts: Fonts) -> str:
    return fonts.say(
        f"rows: {_axis_name(kind, 'query', fonts)}; columns: {_axis_name(kind, 'key', fonts)}",
        f"行：{_axis_name(kind, 'query', fonts)}；列：{_axis_name(kind, 'key', fonts)}",
    )


def _scale_of(tables: Sequence[NDArray[np.floating]]) -> tuple[str, float, float]:
    """Colours, lowest and highest value; the scale of signed weights has zero in the middle."""
    largest = max(max(float(np.abs(table).max()) for table in tables), 1e-9)
    is_signed = any(float(table.min()) < 0 for table in tables)
    return (SIGNED_COLOURS, -largest, largest) if is_signed else (COLOURS, 0.0, largest)


def _at_level(
    trace: Trace, kind: MapKind, weights: NDArray[np.floating], *, level: Level
) -> tuple[NDArray[np.floating], tuple[str, ...], tuple[str, ...]]:
    """The weights [head, query, key] to draw, with the names of their rows and columns.

    Pieces are merged into words before heads are combined: the maximum over heads of a sum is at
    most one, a sum of maxima may be larger.
    """
    if level == "piece":
        return weights, trace.query_pieces(kind), trace.key_pieces(kind)
    queries, keys = group_pieces(trace.query_pieces(kind)), group_pieces(trace.key_pieces(kind))
    return merge_weights(weights, queries, keys), queries.text, keys.text


def _height(num_rows: int, num_columns: int, columns: Labels) -> float:
    """The height in inches that makes cells nearly square, within what a page can show."""
    longest = max(len(text) for text in columns.texts)
    label_space = 0.25 * longest if columns.wide else 0.07 * longest
    cells = min(6.2 / num_columns, 0.6) * num_rows
    return (
        1.1 + min(label_space, 1.6) + min(max(cells, 0.24 * min(num_rows, MAX_LABELS), 1.2), 12.0)
    )


def _name_cells(axes: "Axes", rows: Labels, columns: Labels) -> None:
    every_row, every_column = (-(-len(item.texts) // MAX_LABELS) for item in (rows, columns))
    size = 11 if max(len(rows.texts), len(columns.texts)) <= 24 else 7
    axes.set_yticks(
        range(0, len(rows.texts), every_row), rows.texts[::every_row], fontsize=size, color=INK
    )
    axes.xaxis.tick_top()
    if (
        columns.wide
    ):  # vertical text: one character below the other, as Chinese is set in a narrow column
        names = tuple(
            "\n".join(text) if all(map(_is_full_width, text)) else text for text in columns.texts
        )
        axes.set_xticks(
            range(0, len(names), every_column), names[::every_column], fontsize=size, color=INK
        )
        axes.tick_params(axis="x", labelrotation=0)
    else:
        numbers = all(text.isdigit() for text in columns.texts)
        axes.set_xticks(range(0, len(columns.texts), every_column), columns.texts[::every_column])
        for label in axes.get_xticklabels():
            label.set(
                fontsize=size, color=INK, rotation=0 if numbers else 45, rotation_mode="anchor"
            )
            label.set_horizontalalignment("center" if numbers else "left")
    axes.tick_params(length=0)
    _soften_frame(axes)


def _is_full_width(character: str) -> bool:
    return not character.isascii()


def _soften_frame(axes: "Axes") -> None:
    for spine in axes.spines.values():
        spine.set_edgecolor(FRAME)


def _write_values(axes: "Axes", table: NDArray[np.float64]) -> None:
    """Write the weights into the cells of small tables; weights below 0.05 are left out."""
    if table.shape[1] > MAX_NUMBERED_CELLS:
        return
    is_signed = bool(table.min() < 0)
    for (row, column), value in np.ndenumerate(table):
        if abs(value) >= 0.05:
            share = abs(value) / np.abs(table).max()
            dark = (
                share > 0.6 if is_signed else share < 0.6
            )  # a signed scale is pale in the middle, the other one at its high end
            colour = "white" if dark else INK
            axes.text(
                column, row, f"{value:.2f}", ha="center", va="center", fontsize=8, color=colour
            )


def _axis_name(kind: MapKind, axis: str, fonts: Fonts) -> str:
    match kind, axis:
        case ("encoder_self", "query"):
            return fonts.say("source word that attends", "发出关注的源词")
        case ("decoder_self", "key"):
            return fonts.say("target word read so far", "已读入的译词")
        case (_, "query"):
            return fonts.say("target word being predicted", "正在预测的译词")
        case _:
            return fonts.say("source word attended to", "被关注的源词")


def _finish(
    figure: "Figure", trace: Trace, where: str, fonts: Fonts, *, caption: str, path: Path
) -> None:
    """Add title and caption, lay out, and save."""
    from matplotlib.text import Text

    title = " ".join(trace.title.split())[:MAX_TITLE_LENGTH]
    figure.suptitle(
        f"{title}\n{where}" if title and fonts.can_draw(title) else where, fontsize=13, color=INK
    )
    if caption:
        figure.supxlabel(caption, fontsize=9, color=MUTED)
    set_plain_text(figure.findobj(Text), fonts)
    save_figure(figure, path)
