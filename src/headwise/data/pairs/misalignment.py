"""Where two files stop fitting: the line at which one of them probably lost or gained some.

Line lengths of translations go together: log(length of source / length of target) stays near its
median. If d lines are too many on one side, the files fit as they are before the slip p and shifted
by d after it, so p is where

    Σ_{i<p} |r(i, i) − median| + Σ_{i≥p} |r(i + d, i) − median|        is smallest,  r(i, j) = log((|x_i| + 1) / (|y_j| + 1))

Gale & Church 1993 align sentences by the same clue. Read only when the line counts differ already.

Tested against: lines deleted at known places from texts of realistic lengths.
"""

from collections.abc import Iterable

import numpy as np

MAX_LINES = 5_000_000


def find_slip(source_lengths: Iterable[int], target_lengths: Iterable[int]) -> int:
    """The number of the line (from 1) at which the sides most probably stop fitting."""
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
    # Of equally good places the last: everything before it certainly fits.
    return int(np.flatnonzero(costs <= costs.min() + 1e-9)[-1]) + 1
