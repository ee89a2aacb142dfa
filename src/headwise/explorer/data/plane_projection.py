"""Vectors projected onto two dimensions, so that similar vectors are near each other on a map.

PCA keeps the two directions of greatest variance: it is fast and keeps large distances, but points
crowd together. t-SNE keeps neighbourhoods: every point has a Gaussian over the other points, whose
width is set so that its perplexity is the one asked for, and the points on the map are moved until
Student-t similarities between them agree with these Gaussians.

    PCA      first two left singular vectors of the centred vectors, scaled
    t-SNE    minimise KL(P‖Q),  P from Gaussians,  q_ij ∝ 1/(1 + |y_i - y_j|²)
             gradient 4 Σ_j (p_ij - q_ij) q'_ij (y_i - y_j)

van der Maaten & Hinton (2008). Tested against: PCA by eigenvectors of the covariance; t-SNE keeps
two far clusters apart; the perplexity of each Gaussian is the one asked for.
"""

import numpy as np

_EARLY_STEPS, _STEPS = 100, 400


def project_pca(vectors: np.ndarray) -> np.ndarray:
    """Two coordinates a row. The sign is fixed (the largest entry of each direction is positive),
    so that pictures can be reproduced.
    """
    centred = vectors - vectors.mean(0)
    left, scale, _ = np.linalg.svd(centred.astype(np.float64), full_matrices=False)
    places = np.zeros((len(vectors), 2))
    width = min(2, len(scale))
    places[:, :width] = (left * scale)[:, :width]
    signs = np.sign(places[np.abs(places).argmax(0), [0, 1]])
    return places * np.where(signs == 0, 1, signs)


def neighbour_probabilities(distances: np.ndarray, perplexity: float) -> np.ndarray:
    """Each row is a distribution over the other points whose perplexity is the given one; the
    precision of its Gaussian is found by bisection.
    """
    low, high = np.zeros(len(distances)), np.full(len(distances), np.inf)
    precision = 1 / np.maximum(np.mean(distances, axis=1), 1e-12)
    for _ in range(60):
        scores = -distances * precision[:, None]
        np.fill_diagonal(scores, -np.inf)
        probabilities = np.exp(scores - scores.max(1, keepdims=True))
        probabilities /= probabilities.sum(1, keepdims=True)
        entropy = -np.sum(probabilities * np.log(np.maximum(probabilities, 1e-300)), axis=1)
        wide = entropy > np.log(perplexity)
        low, high = np.where(wide, precision, low), np.where(wide, high, precision)
        precision = np.where(np.isinf(high), precision * 2, (low + high) / 2)
    return probabilities


def project_tsne(vectors: np.ndarray, *, perplexity: float = 12.0) -> np.ndarray:
    """Two coordinates a row. The start is the PCA, so the same vectors always give the same map."""
    num_words = len(vectors)
    if num_words < 4:
        return project_pca(vectors)
    perplexity = min(perplexity, (num_words - 1) / 3)
    unit = vectors.astype(np.float64)
    squares = np.sum(unit**2, axis=1)
    distances = np.maximum(squares[:, None] + squares[None, :] - 2 * unit @ unit.T, 0)
    probabilities = neighbour_probabilities(distances, perplexity)
    wanted = np.maximum((probabilities + probabilities.T) / (2 * num_words), 1e-12)
    places = project_pca(vectors)
    places *= 1e-2 / max(float(places.std()), 1e-12)
    speed, gains = np.zeros_like(places), np.ones_like(places)
    rate = max(num_words / 12.0, 10.0)
    for step in range(_STEPS):
        tails = 1 / (1 + np.sum((places[:, None] - places[None]) ** 2, axis=2))
        np.fill_diagonal(tails, 0)
        shown = np.maximum(tails / tails.sum(), 1e-12)
        pull = (wanted * (12 if step < _EARLY_STEPS else 1) - shown) * tails
        gradient = 4 * (pull.sum(1)[:, None] * places - pull @ places)
        gains = np.where(
            np.sign(gradient) != np.sign(speed), gains + 0.2, np.maximum(gains * 0.8, 0.01)
        )
        speed = (0.5 if step < _EARLY_STEPS else 0.8) * speed - rate * gains * gradient
        places = places + speed
        places -= places.mean(0)
    return places
