"""Plots time, memory and error of attention kernels against the length.

Both axes are logarithmic, so a power of the length is a straight line whose slope is the exponent.
The error is the distance from exact attention. Grey guides show the slopes 1 and 2; they start
slightly below the cheapest kernel. A kernel has the same colour in every picture.

Tested: pictures are written, also with missing points; none is written if nothing was measured.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.comparing.attention import known_kernels
from headwise.comparing.attention_table import AttentionComparison
from headwise.explorer.pictures.comparison_plots import line_style, style_axes
from headwise.explorer.pictures.matplotlib_figure import (
    MUTED,
    Fonts,
    find_fonts,
    new_figure,
    save_figure,
    set_plain_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WHAT = (
    ("forward_seconds", "forward, ms", "前向，毫秒"),
    ("both_seconds", "forward + backward, ms", "前向 + 反向，毫秒"),
    ("memory_mib", "peak memory, MiB", "内存峰值，MiB"),
    ("distance", "distance from exact attention", "与精确注意力的距离"),
)


def draw_attention_comparison(result: AttentionComparison) -> tuple[Path, ...]:
    """Draw one picture of four panels beside the table, or none if nothing was measured."""
    if all(getattr(point, what) is None for point in result.points for what, *_ in WHAT):
        return ()
    fonts = find_fonts()
    figure = new_figure(height=7.6)
    panels = list(figure.subplots(2, 2).flat)
    for axes, (what, en, zh) in zip(panels, WHAT, strict=True):
        _draw(axes, result, what, fonts.say(en, zh), fonts)
    handles, labels = panels[0].get_legend_handles_labels()
    legend = figure.legend(
        handles, labels, loc="outside lower center", fontsize=8, frameon=False, ncols=5
    )
    style_axes(figure, panels, fonts)
    set_plain_text(legend.get_texts(), fonts)
    path = result.directory / "attention.png"
    save_figure(figure, path)
    return (path,)


def _draw(axes: "Axes", result: AttentionComparison, what: str, title: str, fonts: Fonts) -> None:
    from matplotlib.ticker import AutoLocator, LogLocator

    lines: dict[str, list[tuple[int, float]]] = {}
    for name in result.kernels:
        found = [(point.length, getattr(point, what)) for point in result.of(name)]
        scale = 1000 if what.endswith("seconds") else 1
        lines[name] = [
            (length, scale * value) for length, value in found if value is not None and value > 0
        ]
        if any(
            getattr(point, field) is not None for point in result.of(name) for field, *_ in WHAT
        ):
            colour, stroke = line_style(_place(name, result.kernels))
            known = zip(*lines[name], strict=True) if lines[name] else ((), ())
            axes.plot(*known, stroke, marker=".", color=colour, label=name)
    values = [value for line in lines.values() for _, value in line]
    axes.set_xscale("log", base=2)
    # Plain numbers, because powers need matplotlib's math text, which is off for texts of users.
    axes.set_xticks(
        result.lengths,
        [f"{length // 1024}k" if length >= 1024 else str(length) for length in result.lengths],
    )
    axes.set_title(title)
    axes.set_xlabel(fonts.say("length", "长度"))
    if values:  # zero has no logarithm
        axes.set_yscale("log")
        if what != "distance" and len(result.lengths) > 1:
            _draw_guides(
                axes,
                min((line[0] for line in lines.values() if line), key=lambda pair: pair[1]),
                result,
            )
        low, high = axes.get_ylim()
        subdivisions = (1.0,) if high > 1000 * low else (1.0, 2.0, 5.0)
        axes.yaxis.set_major_locator(
            LogLocator(subs=subdivisions) if high > 5 * low else AutoLocator()
        )
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.minorticks_off()


def _place(name: str, others: Sequence[str]) -> int:
    """The number of a kernel among all kinds; unknown names come after them."""
    kinds = list(known_kernels())
    return kinds.index(name) if name in kinds else len(kinds) + list(others).index(name)


def _draw_guides(axes: "Axes", cheapest: tuple[int, float], result: AttentionComparison) -> None:
    start, last = cheapest[0], result.lengths[-1]
    for exponent, name in ((1, "n"), (2, "n²")):
        heights = (0.7 * cheapest[1], 0.7 * cheapest[1] * (last / start) ** exponent)
        axes.plot((start, last), heights, ":", color=MUTED, linewidth=0.8)
        axes.annotate(
            name, (last, heights[1]), (4, -2), textcoords="offset points", fontsize=7, color=MUTED
        )
    left, right = axes.get_xlim()
    axes.set_xlim(left, right * (right / left) ** 0.06)  # space for their names
