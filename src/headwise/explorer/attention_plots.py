"""Pictures of attention kernels over length: time and memory with guides for slopes 1 and 2, and the distance from exact attention.

Both axes are logarithmic: a power of the length is a straight line, and its steepness is the exponent. The grey guides start where
the cheapest kernel does.

Tested: the pictures are written, with points that are missing too, and none where nothing was measured.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from headwise.explorer.comparison_plots import dress, style
from headwise.explorer.drawing import MUTED, Fonts, find_fonts, new_figure, save_figure, write_plainly
from headwise.tasks.attention_table import AttentionComparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WHAT = (
    ("forward_seconds", "forward, seconds", "前向，秒"),
    ("both_seconds", "forward + backward, seconds", "前向 + 反向，秒"),
    ("memory_mib", "peak memory, MiB", "内存峰值，MiB"),
    ("distance", "distance from exact attention", "与精确注意力的距离"),
)


def draw_attention_comparison(result: AttentionComparison) -> tuple[Path, ...]:
    """One picture of four panels beside the table; none where nothing could be measured."""
    if all(getattr(point, what) is None for point in result.points for what, *_ in WHAT):
        return ()
    fonts = find_fonts()
    figure = new_figure(height=7.6)
    panels = list(figure.subplots(2, 2).flat)
    for axes, (what, en, zh) in zip(panels, WHAT, strict=True):
        _draw(axes, result, what, fonts.say(en, zh), fonts)
    handles, labels = panels[0].get_legend_handles_labels()
    legend = figure.legend(handles, labels, loc="outside lower center", fontsize=8, frameon=False, ncols=5)
    dress(figure, panels, fonts)
    write_plainly(legend.get_texts(), fonts)
    path = result.directory / "attention.png"
    save_figure(figure, path)
    return (path,)


def _draw(axes: "Axes", result: AttentionComparison, what: str, title: str, fonts: Fonts) -> None:
    lowest: list[tuple[float, float]] = []
    for number, name in enumerate(result.kernels):
        found = [(point.length, getattr(point, what)) for point in result.of(name)]
        known = [(length, value) for length, value in found if value is not None and value > 0]
        colour, stroke = style(number)
        axes.plot(*(zip(*known, strict=True) if known else ((), ())), stroke, marker=".", color=colour, label=name)
        lowest += known[:1]
    axes.set_xscale("log", base=2)
    if lowest:  # a distance of zero has no logarithm
        axes.set_yscale("log")
    # Plain numbers: powers as matplotlib writes them need its own little typesetting, which text from users must not reach.
    axes.set_xticks(
        result.lengths, [f"{length // 1024}k" if length >= 1024 else str(length) for length in result.lengths]
    )
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.minorticks_off()
    axes.set_title(title)
    axes.set_xlabel(fonts.say("length", "长度"))
    if what != "distance" and lowest and len(result.lengths) > 1:
        start, value = min(lowest, key=lambda pair: pair[1])
        for exponent in (1, 2):
            ends = (start, result.lengths[-1])
            heights = (value, value * (ends[1] / start) ** exponent)
            axes.plot(ends, heights, ":", color=MUTED, linewidth=0.8)
            axes.annotate("n" if exponent == 1 else "n²", (ends[1], heights[1]), fontsize=7, color=MUTED)
