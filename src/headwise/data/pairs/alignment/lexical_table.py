"""A table of translation probabilities: how likely a source token is translated by a target token.
It holds the pairs that occurred together in sentence pairs.

The pairs are numbered source · V + target and sorted, so that many are looked up at once by binary
search. A pair that never occurred, or whose probability is below `SMALLEST`, has `UNSEEN`: such
links are possible, so that every target token can be linked. `null` is the probability of a target
token that translates no source token.
"""

from dataclasses import dataclass

import numpy as np

SMALLEST = 1e-7
UNSEEN = 1e-9


@dataclass(frozen=True)
class LexicalTable:
    """p(target | source) of an aligner, with the two numbers of its prior."""

    keys: np.ndarray
    """Sorted; int64."""
    probabilities: np.ndarray
    null: np.ndarray
    """p(target | no source token), for each target token."""
    null_probability: float
    """How likely a target token is to translate no source token, whatever it is."""
    tension: float

    @property
    def num_targets(self) -> int:
        return len(self.null)

    def look_up(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """p(target | source) for many pairs of tokens."""
        wanted = source.astype(np.int64) * self.num_targets + target
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        found = self.keys[place] == wanted
        return np.where(found, self.probabilities[place], UNSEEN)


def keep_likely(
    keys: np.ndarray,
    probabilities: np.ndarray,
    *,
    null: np.ndarray,
    null_probability: float,
    tension: float,
) -> LexicalTable:
    """The table without the pairs that are hardly possible; at least one pair stays."""
    kept = probabilities >= min(SMALLEST, probabilities.max())
    return LexicalTable(
        keys[kept], probabilities[kept], np.maximum(null, UNSEEN), null_probability, tension
    )
