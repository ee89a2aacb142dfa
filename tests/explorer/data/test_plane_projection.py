"""PCA and t-SNE against independent computations."""

import numpy as np

from headwise.explorer.data.plane_projection import (
    neighbour_probabilities,
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


def test_gaussians_have_the_perplexity_asked_for() -> None:
    distances = ((TWO_CLUSTERS[:, None] - TWO_CLUSTERS[None]) ** 2).sum(2)
    probabilities = neighbour_probabilities(distances, 5.0)
    entropy = -(probabilities * np.log(np.maximum(probabilities, 1e-300))).sum(1)
    assert np.allclose(np.exp(entropy), 5.0, atol=1e-3)


def test_tsne_keeps_clusters_apart() -> None:
    places = project_tsne(TWO_CLUSTERS, perplexity=5)
    first, second = places[:17], places[17:]
    gap = np.linalg.norm(first.mean(0) - second.mean(0))
    assert gap > 2 * max(first.std(), second.std())
    assert np.isfinite(project_tsne(np.zeros((5, 3)))).all()
    assert np.array_equal(project_tsne(TWO_CLUSTERS[:3]), project_pca(TWO_CLUSTERS[:3]))
