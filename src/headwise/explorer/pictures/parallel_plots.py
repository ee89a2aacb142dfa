"""Plots a comparison of autoregressive and parallel translators: speed by batch size, and quality.

On the left, sentences per second over the batch size, both logarithmic: where two lines cross, one
model overtakes the other. On the right, BLEU over the latency of one sentence; the best place is
the upper left corner. A row of the table has the same colour in both panels.

Tested: pictures with one and with many rows are written, and every row is in the legend.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from headwise.comparing.parallel_table import ParallelComparison
from headwise.explorer.pictures.comparison_plots import line_style
from headwise.explorer.pictures.matplotlib_figure import save_figure
from headwise.explorer.pictures.two_panels import TwoPanels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_parallel_comparison(result: ParallelComparison, path: Path) -> None:
    """Draw both panels into this file."""
    save_figure(make_figure(result), path)


def make_figure(result: ParallelComparison) -> "Figure":
    """Throughput on the left, quality on the right."""
    names = [f"{row.model} · {row.decoding}" for row in result.rows]
    panels = TwoPanels.of(names)
    left, right, fonts = panels.left, panels.right, panels.fonts
    for number, (row, label) in enumerate(zip(result.rows, panels.labels, strict=True)):
        colour, stroke = line_style(number)
        sizes = sorted(row.sentences_per_second)
        speeds = [row.sentences_per_second[size] for size in sizes]
        left.plot(sizes, speeds, stroke, marker=".", color=colour, label=label)
        marker = "s" if row.is_parallel else "o"
        right.plot([1000 * row.latency], [row.scores.bleu.value], marker, color=colour)
    left.set_xscale("log", base=2)
    left.set_xticks(result.batches, [str(size) for size in result.batches])
    left.set_yscale("log")
    left.set_xlabel(fonts.say("batch size", "批大小"))
    left.set_ylabel(fonts.say("sentences per second", "句/秒"))
    right.set_xscale("log")
    right.set_xlabel(fonts.say("latency of one sentence, ms", "单句延迟，毫秒"))
    right.set_ylabel("BLEU")
    for axis in (left.yaxis, right.xaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axis.set_minor_formatter(lambda value, _: "")
    return panels.finish(num_columns=3)
