"""A picture of the lineage: perplexity of every model, the oldest on top, and how long each took to learn.

Both axes are logarithmic; lower perplexity is better. Tested: the picture is written, with a model of infinite perplexity too.
"""

from pathlib import Path

from headwise.explorer.comparison_plots import dress, style
from headwise.explorer.drawing import find_fonts, make_labels, new_figure, save_figure
from headwise.tasks.lineage import Lineage

SHORTEST = 0.05


def draw_lineage(lineage: Lineage) -> tuple[Path, ...]:
    """Two panels beside the table."""
    fonts = find_fonts()
    figure = new_figure(height=1.2 + 0.45 * len(lineage.rungs))
    left, right = figure.subplots(1, 2, sharey=True)
    for number, rung in enumerate(lineage.rungs):
        colour, _ = style(number)
        if rung.perplexity is not None:
            left.barh(number, rung.perplexity, color=colour)
            left.annotate(f" {rung.perplexity:.1f}", (rung.perplexity, number), va="center", fontsize=7)
        right.barh(number, max(rung.training_seconds, SHORTEST), color=colour)
    left.set_yticks(range(len(lineage.rungs)), make_labels([rung.name for rung in lineage.rungs], fonts).texts)
    left.invert_yaxis()
    for axes, title in (
        (left, fonts.say("test perplexity", "测试困惑度")),
        (right, fonts.say("seconds of training", "训练秒数")),
    ):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axes.minorticks_off()
        axes.set_xlabel(title)
    dress(figure, [left, right], fonts)
    path = lineage.directory / "lineage.png"
    save_figure(figure, path)
    return (path,)
