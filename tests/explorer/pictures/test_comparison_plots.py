"""Pictures of comparisons of one and of many variants, and of one that has no scores."""

from pathlib import Path

import pytest

from headwise.comparing.recipe_table import ComparisonResult, VariantResult
from headwise.evaluation.several_seeds import Estimate
from headwise.explorer.pictures import comparison_plots
from headwise.explorer.pictures.comparison_plots import COLOURS, draw_comparison, line_style
from headwise.tasks.translation.comparison_metrics import translation_comparison_metrics
from tests.tasks.tiny import tiny_recipe


def _comparison(directory: Path, num_variants: int, *, scored: bool) -> ComparisonResult:
    quality = {"bleu": Estimate(30.0, 29.0, 31.0)} if scored else {}
    names = [f"变体 $n_{number}" for number in range(num_variants)]
    variants = tuple(
        VariantResult(name, (1,), quality, {}, {}, 2.0, 7, 0.1, 5.0, 3.0) for name in names
    )
    curves = {
        f"{name} · 1": [
            {"step": 2, "loss": 5.0, "seconds": 1.0},
            {"step": 4, "loss": 4.0, "seconds": 2.0},
        ]
        for name in names
        if scored
    }
    comparison_metrics = translation_comparison_metrics(tiny_recipe())
    return ComparisonResult(directory, variants, "signature", 1, {}, curves, comparison_metrics)


@pytest.mark.parametrize("num_variants", [2, 13])
def test_pictures_are_written(tmp_path: Path, num_variants: int) -> None:
    pictures = draw_comparison(_comparison(tmp_path, num_variants, scored=True))
    assert [path.name for path in pictures] == ["quality.png", "learning-curves.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)


@pytest.mark.parametrize("num_variants", [1, 2, 13])
def test_no_point_lies_on_the_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_variants: int
) -> None:
    frames: list[tuple[float, float]] = []
    monkeypatch.setattr(
        comparison_plots,
        "save_figure",
        lambda figure, path: frames.append(figure.axes[0].get_ylim()),
    )
    comparison_plots.draw_comparison(_comparison(tmp_path, num_variants, scored=True))
    assert frames[0] == (num_variants - 0.5, -0.5), (
        "half a line of room above the first and below the last"
    )


def test_nothing_is_drawn_without_numbers(tmp_path: Path) -> None:
    assert draw_comparison(_comparison(tmp_path, 2, scored=False)) == ()


def test_every_line_looks_different() -> None:
    assert len({line_style(number) for number in range(4 * len(COLOURS))}) == 4 * len(COLOURS)
