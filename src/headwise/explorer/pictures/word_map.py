"""A map of words: vectors of a hundred numbers laid out on paper, near words near each other.

PCA keeps the two directions of greatest variance: quick, honest about distance, crowded. t-SNE
keeps neighbourhoods: each word has a bell of neighbours whose width is set so that it counts about
`perplexity` of them, and points are moved until heavy-tailed distances on paper agree with those
bells.

    PCA      first two left singular vectors of the centred vectors, scaled
    t-SNE    minimise KL(P‖Q),  P from Gaussians,  q_ij ∝ 1/(1 + |y_i - y_j|²);  gradient 4 Σ_j (p_ij - q_ij) q'_ij (y_i - y_j)

van der Maaten & Hinton (2008). Tested against: PCA by eigenvectors of the covariance; t-SNE keeps
two far clusters apart; the perplexity of each bell is the one asked for.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from headwise.errors import UsageError
from headwise.explorer.pictures.matplotlib_figure import (
    FRAME,
    INK,
    MUTED,
    explain_missing,
    find_fonts,
    make_labels,
    new_figure,
    save_figure,
    write_plainly,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

MAX_WORDS = 1000
ACCENT = "#b3261e"
_EARLY_STEPS, _STEPS = 100, 400


def project_pca(vectors: np.ndarray) -> np.ndarray:
    """Two coordinates a row; the sign is fixed (the largest entry of each direction is positive),
    so that pictures repeat.
    """
    centred = vectors - vectors.mean(0)
    left, scale, _ = np.linalg.svd(centred.astype(np.float64), full_matrices=False)
    places = np.zeros((len(vectors), 2))
    width = min(2, len(scale))
    places[:, :width] = (left * scale)[:, :width]
    signs = np.sign(places[np.abs(places).argmax(0), [0, 1]])
    return places * np.where(signs == 0, 1, signs)


def neighbour_bells(distances: np.ndarray, perplexity: float) -> np.ndarray:
    """Each row a distribution over the others, as wide as gives it the perplexity (by bisection on
    the precision).
    """
    low, high = np.zeros(len(distances)), np.full(len(distances), np.inf)
    precision = 1 / np.maximum(np.mean(distances, axis=1), 1e-12)
    for _ in range(60):
        scores = -distances * precision[:, None]
        np.fill_diagonal(scores, -np.inf)
        bells = np.exp(scores - scores.max(1, keepdims=True))
        bells /= bells.sum(1, keepdims=True)
        entropy = -np.sum(bells * np.log(np.maximum(bells, 1e-300)), axis=1)
        wide = entropy > np.log(perplexity)
        low, high = np.where(wide, precision, low), np.where(wide, high, precision)
        precision = np.where(np.isinf(high), precision * 2, (low + high) / 2)
    return bells


def project_tsne(vectors: np.ndarray, *, perplexity: float = 12.0) -> np.ndarray:
    """Two coordinates a row, begun from PCA: the same vectors give the same map."""
    num_words = len(vectors)
    if num_words < 4:
        return project_pca(vectors)
    perplexity = min(perplexity, (num_words - 1) / 3)
    unit = vectors.astype(np.float64)
    squares = np.sum(unit**2, axis=1)
    distances = np.maximum(squares[:, None] + squares[None, :] - 2 * unit @ unit.T, 0)
    bells = neighbour_bells(distances, perplexity)
    wanted = np.maximum((bells + bells.T) / (2 * num_words), 1e-12)
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


def draw_word_map(
    words: Sequence[str],
    vectors: np.ndarray,
    path: Path,
    *,
    method: Literal["pca", "tsne"] = "tsne",
    marked: Sequence[str] = (),
) -> tuple[str, ...]:
    """A picture with a point and a label for each word; `marked` ones in red.

    Returns what the labels 1, 2, … stand for where no font could draw the words, else nothing.
    """
    if not 2 <= len(words) <= MAX_WORDS:
        raise UsageError(
            f"a map of {len(words):,} words was asked for; give 2 to {MAX_WORDS:,}",
            f"要求画 {len(words):,} 个词；请给出 2 到 {MAX_WORDS:,} 个",
        )
    places = project_pca(vectors) if method == "pca" else project_tsne(vectors)
    fonts = find_fonts()
    labels = make_labels(words, fonts)
    figure = new_figure(height=7.0)
    axes = figure.add_subplot()
    red = set(marked)
    colours = [ACCENT if word in red else MUTED for word in words]
    axes.scatter(places[:, 0], places[:, 1], s=10, c=colours, linewidths=0)
    axes.margins(0.08)
    figure.draw_without_rendering()  # fixes the scale, by which labels are placed
    texts = _place_labels(
        axes, places, labels.texts, [ACCENT if word in red else INK for word in words]
    )
    title = axes.set_title(
        fonts.say(f"{len(words)} words, {method.upper()}", f"{len(words)} 个词，{method.upper()}")
    )
    texts.append(title)
    if note := explain_missing([labels], instead="The command prints what they stand for."):
        texts.append(axes.set_xlabel(note, fontsize=8))
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_color(FRAME)
    write_plainly(texts, fonts)
    save_figure(figure, path)
    return tuple(words) if labels.missing else ()


def _place_labels(
    axes: "Axes", places: np.ndarray, texts: Sequence[str], colours: Sequence[str]
) -> list["Text"]:
    """Labels beside their points, where they cover no earlier label; the first of eight places that
    is free, else none.
    """
    size = float(np.clip(10 - len(texts) / 60, 6, 9))
    to_dots = axes.transData.transform(places)
    taken: list[tuple[float, float, float, float]] = []
    written = []
    for number, text in enumerate(texts):
        wide = sum(2 if ord(character) > 0x2E7F else 1.15 for character in text)
        width, height = wide * size * 0.55 * 150 / 72, size * 1.25 * 150 / 72
        x, y = to_dots[number]
        for right, up in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)):
            left = x + (6 if right > 0 else -6 - width if right < 0 else -width / 2)
            bottom = y + (5 if up > 0 else -5 - height if up < 0 else -height / 2)
            box = (left, bottom, left + width, bottom + height)
            if not any(
                box[0] < o[2] and o[0] < box[2] and box[1] < o[3] and o[1] < box[3] for o in taken
            ):
                taken.append(box)
                spot = axes.transData.inverted().transform((left, bottom + height / 2))
                written.append(
                    axes.text(
                        spot[0],
                        spot[1],
                        text,
                        fontsize=size,
                        color=colours[number],
                        va="center",
                        ha="left",
                    )
                )
                break
    return written
