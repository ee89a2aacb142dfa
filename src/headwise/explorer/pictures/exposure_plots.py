"""Plots the exposure bias of translators: how far a decoder that reads its own words drifts from
one that reads the reference, by position.

On the left, the share of sentences in which both predict the same next token; on the right, the
total variation distance of their distributions. A model has the same colour in both panels. The
legend gives the BLEU of the continuation after a right and after a wrong beginning.

Tested: pictures of one and of several models are written, and every model is in the legend.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from headwise.comparing.exposure import ExposureResult
from headwise.explorer.pictures.comparison_plots import line_style
from headwise.explorer.pictures.matplotlib_figure import save_figure
from headwise.explorer.pictures.two_panels import TwoPanels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_exposure(result: ExposureResult, path: Path) -> None:
    """Draw both panels into this file."""
    save_figure(make_figure(result), path)


def make_figure(result: ExposureResult) -> "Figure":
    """Agreement on the left, total variation on the right."""
    names = [
        f"{row.model} · BLEU {row.after.right.bleu.value:.1f} → {row.after.wrong.bleu.value:.1f}"
        for row in result.rows
    ]
    panels = TwoPanels.of(names)
    left, right, fonts = panels.left, panels.right, panels.fonts
    positions = range(1, result.num_positions + 1)
    for number, (row, label) in enumerate(zip(result.rows, panels.labels, strict=True)):
        colour, stroke = line_style(number)
        shares = [100 * share for share in row.agreement.agreement[: result.num_positions]]
        distances = row.agreement.total_variation[: result.num_positions]
        left.plot(positions, shares, stroke, marker=".", color=colour, label=label)
        right.plot(positions, distances, stroke, marker=".", color=colour)
    left.set_ylabel(fonts.say("same next token, %", "下一词元相同，%"))
    right.set_ylabel(fonts.say("total variation distance", "全变差距离"))
    left.set_ylim(0, 102)
    right.set_ylim(0, 1)
    for axes in (left, right):
        axes.set_xlabel(fonts.say("position in the translation", "译文中的位置"))
    return panels.finish(num_columns=2)
