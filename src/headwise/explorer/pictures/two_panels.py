"""Lays out a picture of two panels that share their colours and one legend below.

Each row of a comparison has one colour in both panels. Tested with the pictures that use it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwise.explorer.pictures.comparison_plots import style_axes
from headwise.explorer.pictures.matplotlib_figure import (
    Fonts,
    find_fonts,
    make_labels,
    new_figure,
    set_plain_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class TwoPanels:
    """The figure before its lines are drawn; a line of the left panel carries its label."""

    figure: "Figure"
    left: "Axes"
    right: "Axes"
    labels: Sequence[str]
    fonts: Fonts

    @staticmethod
    def of(names: Sequence[str]) -> "TwoPanels":
        """Empty panels, and as much room for the legend as so many rows need."""
        fonts = find_fonts()
        figure = new_figure(height=3.8 + 0.16 * len(names))
        left, right = figure.subplots(1, 2)
        return TwoPanels(figure, left, right, make_labels(names, fonts).texts, fonts)

    def finish(self, *, num_columns: int) -> "Figure":
        """Add the legend and the style once all lines are drawn."""
        handles, _ = self.left.get_legend_handles_labels()
        legend = self.figure.legend(
            handles,
            self.labels,
            loc="outside lower center",
            fontsize=8,
            frameon=False,
            ncols=num_columns,
        )
        style_axes(self.figure, [self.left, self.right], self.fonts)
        set_plain_text(legend.get_texts(), self.fonts)
        return self.figure
