"""A picture of the lineage: perplexity of every model, the oldest on top, and how long each took to
learn.

Both axes are logarithmic, so a model is a dot with its number beside it (a bar would begin
nowhere); lower perplexity is better, and a model without one has its sign at the edge. Tested:
every dot and every number stands inside its frame, with a model of infinite perplexity too.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.comparing.lineage_table import Lineage, show_seconds
from headwise.explorer.pictures.comparison_plots import line_style, style_axes
from headwise.explorer.pictures.matplotlib_figure import (
    INK,
    find_fonts,
    make_labels,
    new_figure,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARGIN, NUMBERS = 1.25, 0.3
"""Room beside the dots: a factor on the left; on the right the share of the axis that a number
needs."""


def draw_lineage(lineage: Lineage) -> tuple[Path, ...]:
    """Two panels beside the table."""
    path = lineage.directory / "lineage.png"
    save_figure(make_figure(lineage), path)
    return (path,)


def make_figure(lineage: Lineage) -> "Figure":
    """Perplexity on the left, seconds on the right."""
    fonts = find_fonts()
    figure = new_figure(height=1.2 + 0.45 * len(lineage.rungs))
    left, right = figure.subplots(1, 2, sharey=True)
    perplexities = [rung.perplexity for rung in lineage.rungs]
    seconds = [rung.training_seconds or None for rung in lineage.rungs]
    _dots(left, perplexities, ["∞" if value is None else f"{value:.1f}" for value in perplexities])
    _dots(right, seconds, [show_seconds(value or 0.0) for value in seconds])
    left.set_yticks(
        range(len(lineage.rungs)), make_labels([rung.name for rung in lineage.rungs], fonts).texts
    )
    left.set_ylim(len(lineage.rungs) - 0.5, -0.5)
    left.set_xlabel(fonts.say("test perplexity", "测试困惑度"))
    right.set_xlabel(fonts.say("seconds of training", "训练秒数"))
    style_axes(figure, [left, right], fonts)
    return figure


def _dots(axes: "Axes", values: Sequence[float | None], labels: Sequence[str]) -> None:
    """A dot for each value and its number to the right; what has no place on the axis has its label
    at the left edge.
    """
    drawn = [value for value in values if value is not None] or [1.0]
    low = min(drawn) / MARGIN
    # On a logarithmic axis a share of its length is a power of what it spans.
    high = low * (max(drawn) * MARGIN / low) ** (1 / (1 - NUMBERS))
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    for number, (value, label) in enumerate(zip(values, labels, strict=True)):
        colour, _ = line_style(number)
        if value is not None:
            axes.plot([value], [number], "o", color=colour, markersize=6)
        axes.annotate(
            label,
            (low if value is None else value, number),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            color=INK,
            fontsize=7,
        )
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.minorticks_off()
