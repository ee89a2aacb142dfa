"""Pictures of a comparison of recipes: quality with confidence intervals, and validation loss.

Quality has one line for each variant, with a point at the mean and a bar for the 95 % interval; the
grey band is the interval of the first variant. Learning curves have one colour for each variant and
one line for each seed: on the left over updates, which is the same budget for all, on the right
over time.

Tested: a picture is written for comparisons of every size, and its texts name what it shows.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwise.comparing.recipe_table import ComparisonResult
from headwise.explorer.pictures.matplotlib_figure import (
    FRAME,
    INK,
    MUTED,
    Fonts,
    find_fonts,
    make_labels,
    new_figure,
    save_figure,
    set_plain_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (
    "#1f5fa8",
    "#d1622b",
    "#2f8f5b",
    "#8a4fa3",
    "#b8860b",
    "#c23b59",
    "#3a8ea5",
    "#6b6b6b",
    "#7d5a3c",
    "#9aa81f",
)
"""In the order of the lines; after ten lines they repeat with other strokes."""
STROKES = ("-", "--", ":", "-.")


def draw_comparison(result: ComparisonResult) -> tuple[Path, ...]:
    """Draw `quality.png` and `learning-curves.png` beside the table; a picture without numbers is
    left out.
    """
    fonts = find_fonts()
    pictures = []
    if any(variant.quality for variant in result.variants):
        pictures.append(_draw_quality(result, fonts))
    if any(result.curves.values()):
        pictures.append(_draw_curves(result, fonts))
    return tuple(pictures)


def _draw_quality(result: ComparisonResult, fonts: Fonts) -> Path:
    shown = [variant for variant in result.variants if variant.quality]
    figure = new_figure(height=1.4 + 0.38 * len(shown))
    axes = figure.add_subplot()
    metric = result.comparison_metrics.metrics[0]
    first = shown[0].quality[metric.key]
    axes.axvspan(first.low, first.high, color=FRAME, alpha=0.45, linewidth=0)
    for number, variant in enumerate(shown):
        found = variant.quality[metric.key]
        colour, _ = line_style(number)
        axes.plot([found.low, found.high], [number, number], color=colour, linewidth=2.2)
        axes.plot([found.value], [number], "o", color=colour, markersize=6)
    labels = make_labels([variant.name for variant in shown], fonts)
    axes.set_yticks(range(len(shown)), labels.texts)
    # The first variant is on top, with half a line of space above and below.
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlabel(
        fonts.say(
            f"{metric.axis[0]} of the test set, mean over seeds, 95 % interval",
            f"测试集{metric.axis[1]}，种子平均，95% 区间",
        )
    )
    return _finish(figure, [axes], fonts, result.directory / "quality.png")


def _draw_curves(result: ComparisonResult, fonts: Fonts) -> Path:
    figure = new_figure(height=3.6)
    left, right = figure.subplots(1, 2, sharey=True)
    names = make_labels([variant.name for variant in result.variants], fonts).texts
    for number, variant in enumerate(result.variants):
        colour, stroke = line_style(number)
        curves = [
            lines
            for label, lines in result.curves.items()
            if label.startswith(f"{variant.name} · ") and lines
        ]
        for index, lines in enumerate(curves):
            losses = [line["loss"] for line in lines]
            label = names[number] if index == 0 else None
            for axes, key in ((left, "step"), (right, "seconds")):
                axes.plot(
                    [line[key] for line in lines],
                    losses,
                    stroke,
                    marker=".",
                    color=colour,
                    label=label,
                )
    left.set_xlabel(fonts.say("updates", "更新次数"))
    right.set_xlabel(fonts.say("seconds of training", "训练秒数"))
    left.set_ylabel(fonts.say("validation loss", "验证损失"))
    right.legend(fontsize=7, frameon=False)
    return _finish(figure, [left, right], fonts, result.directory / "learning-curves.png")


def line_style(number: int) -> tuple[str, str]:
    """Colour and stroke of a line."""
    return COLOURS[number % len(COLOURS)], STROKES[number // len(COLOURS) % len(STROKES)]


def _finish(figure: "Figure", all_axes: "Sequence[Axes]", fonts: Fonts, path: Path) -> Path:
    style_axes(figure, all_axes, fonts)
    save_figure(figure, path)
    return path


def style_axes(figure: "Figure", all_axes: "Sequence[Axes]", fonts: Fonts) -> None:
    """Grey frames, and fonts that have all characters."""
    texts: list[Any] = []
    for axes in all_axes:
        axes.grid(visible=True, color=FRAME, linewidth=0.5, alpha=0.6)
        axes.set_axisbelow(True)
        axes.tick_params(colors=MUTED, labelsize=8)
        for side in axes.spines.values():
            side.set_color(FRAME)
        for text in (axes.xaxis.label, axes.yaxis.label, axes.title):
            text.set_color(INK)
            text.set_fontsize(9)
        texts += [axes.xaxis.label, axes.yaxis.label, axes.title, *axes.get_yticklabels()]
        legend = axes.get_legend()
        texts += [] if legend is None else legend.get_texts()
    set_plain_text(texts, fonts)
