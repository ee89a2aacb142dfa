"""The map of words: projections against independent computations, a picture with Chinese labels."""

from pathlib import Path

import numpy as np
import pytest

from headwise.errors import UsageError
from headwise.explorer.pictures import word_map
from headwise.explorer.pictures.matplotlib_figure import BASE_FONT, Fonts
from headwise.explorer.pictures.word_map import (
    draw_word_map,
    neighbour_bells,
    project_pca,
    project_tsne,
)

RNG = np.random.default_rng(1)
TWO_CLUSTERS = np.concatenate([RNG.normal(size=(17, 11)) + 6, RNG.normal(size=(19, 11)) - 6])


def test_pca_is_the_covariances_eigenvectors() -> None:
    centred = TWO_CLUSTERS - TWO_CLUSTERS.mean(0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    expected = centred @ vectors[:, ::-1][:, :2]
    assert np.allclose(np.abs(project_pca(TWO_CLUSTERS)), np.abs(expected))


def test_bells_have_the_perplexity_asked_for() -> None:
    distances = ((TWO_CLUSTERS[:, None] - TWO_CLUSTERS[None]) ** 2).sum(2)
    bells = neighbour_bells(distances, 5.0)
    entropy = -(bells * np.log(np.maximum(bells, 1e-300))).sum(1)
    assert np.allclose(np.exp(entropy), 5.0, atol=1e-3)


def test_tsne_keeps_clusters_apart() -> None:
    places = project_tsne(TWO_CLUSTERS, perplexity=5)
    first, second = places[:17], places[17:]
    gap = np.linalg.norm(first.mean(0) - second.mean(0))
    assert gap > 2 * max(first.std(), second.std())
    assert np.isfinite(project_tsne(np.zeros((5, 3)))).all()
    assert np.array_equal(project_tsne(TWO_CLUSTERS[:3]), project_pca(TWO_CLUSTERS[:3]))


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_a_picture(tmp_path: Path, method: str) -> None:
    words = ["词性", "磁性", "king", "$x$", "queen"]
    path = tmp_path / "map.png"
    draw_word_map(words, TWO_CLUSTERS[:5], path, method=method, marked=["king"])  # type: ignore[arg-type]
    assert path.read_bytes().startswith(b"\x89PNG")


def test_numbers_come_with_their_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("词性", "磁性", "king")
    monkeypatch.setattr(
        word_map, "find_fonts", lambda: Fonts((BASE_FONT,), frozenset(range(32, 127)))
    )
    assert draw_word_map(words, TWO_CLUSTERS[:3], tmp_path / "map.png", method="pca") == words
    assert (
        draw_word_map(["man", "queen"], TWO_CLUSTERS[:2], tmp_path / "map.svg", method="pca") == ()
    )


def test_one_word_is_no_map(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a map of 1 words was asked for; give 2 to 1,000"):
        draw_word_map(["a"], np.ones((1, 2)), tmp_path / "map.png")
