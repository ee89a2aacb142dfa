"""Finds the line at which two parallel files stop being aligned.

It is used only if the line counts differ. The lengths of translations are correlated:
r(i, j) = log((|x_i| + 1) / (|y_j| + 1)), for source line x_i and target line y_j, stays near its
median. If one side has d lines too many, the files are aligned as they are before some line p and
shifted by d after it. p minimises

    Σ_{i<p} |r(i, i) − median| + Σ_{i≥p} |r(i + d, i) − median|

Gale & Church 1993 align sentences by the same clue.

Tested against: lines deleted at known positions from texts of realistic lengths.
"""

from collections.abc import Iterable

import numpy as np

MAX_LINES = 5_000_000


def find_slip(source_lengths: Iterable[int], target_lengths: Iterable[int]) -> int:
    """The number of the line (from 1) at which the files most probably stop being aligned."""
    source = np.log1p(np.fromiter(source_lengths, dtype=np.float64))
    target = np.log1p(np.fromiter(target_lengths, dtype=np.float64))
    count, surplus = min(len(source), len(target)), len(source) - len(target)
    if count == 0:
        return 1
    straight = source[:count] - target[:count]
    shifted = source[surplus:] - target if surplus > 0 else source - target[-surplus:]
    usual = np.median(np.concatenate([straight, shifted]))
    before = np.concatenate([[0.0], np.cumsum(np.abs(straight - usual))])
    after = np.concatenate([np.cumsum(np.abs(shifted - usual)[::-1])[::-1], [0.0]])
    costs = before + after
    # Of equally good lines take the last: everything before it is aligned.
    return int(np.flatnonzero(costs <= costs.min() + 1e-9)[-1]) + 1
