"""Plots the history of language models: perplexity and training time, the oldest model on top.

`headwise compare lineage` draws it. Both axes are logarithmic. A model is a dot with its number
beside it; bars would need a zero, which a logarithmic axis lacks. Lower perplexity is better; an
infinite perplexity is written at the left edge.

Tested: every dot and every number lies inside its frame, also with an infinite perplexity.
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
"""Space beside the dots: a factor on the left, and the share of the axis for numbers on the
right."""


def draw_lineage(lineage: Lineage) -> tuple[Path, ...]:
    """Draw the two panels beside the table."""
    path = lineage.directory / "lineage.png"
    save_figure(make_figure(lineage), path)
    return (path,)


def make_figure(lineage: Lineage) -> "Figure":
    """Perplexity on the left, seconds on the right."""
    fonts = find_fonts()
    figure = new_figure(height=1.2 + 0.45 * len(lineage.models))
    left, right = figure.subplots(1, 2, sharey=True)
    perplexities = [model.perplexity for model in lineage.models]
    seconds = [model.training_seconds or None for model in lineage.models]
    _dots(left, perplexities, ["∞" if value is None else f"{value:.1f}" for value in perplexities])
    _dots(right, seconds, [show_seconds(value or 0.0) for value in seconds])
    left.set_yticks(
        range(len(lineage.models)),
        make_labels([model.name for model in lineage.models], fonts).texts,
    )
    left.set_ylim(len(lineage.models) - 0.5, -0.5)
    left.set_xlabel(fonts.say("test perplexity", "测试困惑度"))
    right.set_xlabel(fonts.say("seconds of training", "训练秒数"))
    style_axes(figure, [left, right], fonts)
    return figure


def _dots(axes: "Axes", values: Sequence[float | None], labels: Sequence[str]) -> None:
    """A dot for each value with its number to the right; a value that the axis cannot show has its
    label at the left edge.
    """
    drawn = [value for value in values if value is not None] or [1.0]
    low = min(drawn) / MARGIN
    # On a logarithmic axis a share of the length is a power of the ratio of its ends.
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
