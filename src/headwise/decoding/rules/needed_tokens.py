"""Computes, as a table, the fewest tokens that a text still needs before it may end because
required phrases are missing.

The table has an entry for every automaton state and set of required phrases already written
(`text_rules.py` explains both). It is filled by the number of tokens n: an entry is n if some token
leads from it to an entry n - 1. A set of phrases is a bit in a row of the table, so one operation
handles all sets.
Tested against exhaustive search.
"""

from collections.abc import Iterator
from itertools import count

import numpy as np
from numpy.typing import NDArray

from headwise.decoding.rules.token_effects import TokenEffects

IMPOSSIBLE = 32_767
ROWS = 256
BLOCK = 1 << 16
"""Edges handled together, so that memory is bounded."""


def count_needed(
    at_end: NDArray[np.int32], effects: TokenEffects, all_required: int
) -> NDArray[np.int16]:
    """[state, set of phrases]: the fewest tokens.

    `at_end` holds, for each state, the bits of the phrases that are complete if the text ends.
    """
    written = np.arange(all_required + 1)
    is_complete: NDArray[np.bool_] = (written | at_end[:, None]) & all_required == all_required
    may_end = is_complete & (at_end[:, None] <= all_required)
    near: NDArray[np.bool_] = np.vstack([may_end, np.zeros((1, len(written)), dtype=bool)])
    need = np.where(near, 0, IMPOSSIBLE).astype(np.int16)
    plain, completing, bits = _edges(effects)
    is_new: NDArray[np.bool_] = np.logical_or.reduce(near, axis=1)
    for level in count(1):
        packed = np.packbits(near, axis=1)
        reached = packed.copy()
        for source, target in _blocks(plain[:, is_new[plain[1]]]):
            _or_rows(reached, source, packed[target])
        used = is_new[completing[1]]
        for source, target, bit in _blocks(np.vstack([completing[:, used], bits[used]])):
            after = np.take_along_axis(near[target], written | bit[:, None], axis=1)
            _or_rows(reached, source, np.packbits(after, axis=1))
        new = np.unpackbits(reached & ~packed, axis=1, count=len(written)).astype(bool)
        if not new.any():
            return need
        need[new] = level
        near, is_new = near | new, np.logical_or.reduce(new, axis=1)
    raise AssertionError


def _blocks(edges: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    return (edges[:, begin : begin + BLOCK] for begin in range(0, edges.shape[1], BLOCK))


def _or_rows(rows: NDArray[np.uint8], numbers: NDArray[np.int64], more: NDArray[np.uint8]) -> None:
    """rows[numbers[i]] |= more[i]; `numbers` are in order."""
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    rows[numbers[first]] |= np.bitwise_or.reduceat(more, first, axis=0)


def _edges(effects: TokenEffects) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Edges of tokens that complete nothing, edges of the others, and what these complete."""
    num_states = len(effects.moves)
    plain: list[NDArray[np.int64]] = []
    others: list[NDArray[np.int64]] = []
    for begin in range(0, num_states, ROWS):
        moves, found = (
            effects.moves[begin : begin + ROWS].astype(np.int64),
            effects.found[begin : begin + ROWS],
        )
        is_next = np.zeros((len(moves), num_states), dtype=bool)
        source, column = np.nonzero(found == 0)
        is_next[source, moves[source, column]] = True
        source, target = np.nonzero(is_next)
        plain.append(np.stack([source + begin, target]))
        source, column = np.nonzero(found)
        keys = (source + begin) * num_states + moves[source, column]
        others.append(np.unique(keys * 256 + found[source, column]))
    keys, bits = np.divmod(np.concatenate(others), 256)
    return np.hstack(plain), np.stack(np.divmod(keys, num_states)), bits
