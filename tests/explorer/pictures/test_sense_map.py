"""Occurrences by sense: places of points, the picture as a file."""

from pathlib import Path

import numpy as np
import pytest

from headwise.errors import UsageError
from headwise.explorer.pictures import sense_map
from headwise.explorer.pictures.matplotlib_figure import BASE_FONT, Fonts
from headwise.explorer.pictures.sense_map import draw_sense_map, place_points

SENSES = ["bank_river"] * 7 + ["bank_money"] * 11


def _clouds() -> np.ndarray:
    generator = np.random.default_rng(1)
    return np.concatenate([generator.normal(size=(7, 5)) + 9, generator.normal(size=(11, 5)) - 9])


def test_a_static_vector_is_one_place_and_clouds_stay_apart() -> None:
    assert (place_points(np.ones((5, 3)), method="tsne") == 0).all()
    for method in ("pca", "tsne"):
        places = place_points(_clouds(), method=method)
        centres = places[:7].mean(0), places[7:].mean(0)
        spread = max(
            np.linalg.norm(places[:7] - centres[0], axis=1).max(),
            np.linalg.norm(places[7:] - centres[1], axis=1).max(),
        )
        assert np.linalg.norm(centres[0] - centres[1]) > spread


def test_a_picture_with_a_panel_for_each_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panels = {"words": np.ones((18, 5)), "elmo": _clouds(), "bert": _clouds()}
    assert draw_sense_map("bank", SENSES, panels, tmp_path / "bank.png", method="pca") == ()
    assert (tmp_path / "bank.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    monkeypatch.setattr(
        sense_map, "find_fonts", lambda: Fonts((BASE_FONT,), frozenset(range(32, 127)))
    )
    senses = ["bank_河岸"] * 7 + [
        "bank_银行"
    ] * 11  # the most frequent first, as in the list of the picture
    assert draw_sense_map("bank", senses, panels, tmp_path / "zh.png", method="pca") == (
        "银行",
        "河岸",
    )
    with pytest.raises(UsageError, match="a picture needs at least 2"):
        draw_sense_map("bank", ["river"], {"words": np.ones((1, 5))}, tmp_path / "one.png")
