"""Checks that the back-off weights of an ARPA file keep every probability at 1 or below.

Let h be a context and h' the same without its first word. Words listed after h have probabilities
of their own. All other words together get weight(h) · (1 - Σ p(w|h')), where the sum is over the
listed words w. This must be at most 1:

    weight(h) ≤ 1 / (1 - Σ listed p(w|h'))

Weights of at most 1 need no check.
Tested against: our own Katz models, whose weights exceed 1, and weights made too large.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwise.models.ngram.counting import TokenStream
from headwise.models.ngram.model import NgramModel
from headwise.models.ngram.tables import Level, NgramTables

ROUNDING = 1e-3
SMALLEST_REST = 1e-6
"""The probability that the listed words leave is known only to this precision: files have
logarithms of seven digits."""


@dataclass(frozen=True)
class HeavyWeight:
    """The context, the logarithm of its weight, and what that might be at most."""

    context: int
    given: float
    allowed: float


def find_heavy_weight(
    levels: Sequence[Level], table: NDArray[np.int64], contexts: NDArray[np.int64]
) -> HeavyWeight | None:
    """The first context of the last level whose weight is too large.

    `table` holds the n-grams that are listed one order above.
    """
    weights = levels[-1].weights
    if not (weights > 0).any():
        return None
    rows = weights[contexts] > 0
    listed = np.zeros(len(weights))
    if rows.any():
        suffixes = table[rows, 1:]
        model = NgramModel(NgramTables(tuple(levels), falls_back=True, floor=0.0))
        tokens = suffixes.ravel().astype(np.int32)
        # The model sees as many words before the last as a suffix has: what stands before the
        # suffix does not matter.
        scores = model.score_stream(TokenStream(tokens, np.ones(len(tokens), dtype=np.int32)))
        lower = np.exp(scores[suffixes.shape[1] - 1 :: suffixes.shape[1]].astype(np.float64))
        np.add.at(listed, contexts[rows], lower)
    most = np.log(1 / np.clip(1 - listed, SMALLEST_REST, 1.0))
    heavy = weights > most + ROUNDING
    if not heavy.any():
        return None
    at = int(np.argmax(heavy))
    return HeavyWeight(at, float(weights[at]), float(most[at]))
