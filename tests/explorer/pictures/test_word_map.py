"""The map of words: a picture with Chinese labels."""

from pathlib import Path

import numpy as np
import pytest

from headwise.errors import UsageError
from headwise.explorer.pictures import word_map
from headwise.explorer.pictures.matplotlib_figure import BASE_FONT, Fonts
from headwise.explorer.pictures.word_map import draw_word_map

RNG = np.random.default_rng(1)
VECTORS = RNG.normal(size=(5, 11))


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_a_picture(tmp_path: Path, method: str) -> None:
    words = ["词性", "磁性", "king", "$x$", "queen"]
    path = tmp_path / "map.png"
    draw_word_map(words, VECTORS[:5], path, method=method, marked=["king"])  # type: ignore[arg-type]
    assert path.read_bytes().startswith(b"\x89PNG")


def test_numbers_come_with_their_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("词性", "磁性", "king")
    monkeypatch.setattr(
        word_map, "find_fonts", lambda: Fonts((BASE_FONT,), frozenset(range(32, 127)))
    )
    assert draw_word_map(words, VECTORS[:3], tmp_path / "map.png", method="pca") == words
    assert draw_word_map(["man", "queen"], VECTORS[:2], tmp_path / "map.svg", method="pca") == ()


def test_one_word_is_no_map(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a map of 1 words was asked for; give 2 to 1,000"):
        draw_word_map(["a"], np.ones((1, 2)), tmp_path / "map.png")
