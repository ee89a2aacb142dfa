"""The flat arrays of cells against two nested loops."""

import numpy as np
import pytest

from headwise.data.pairs.alignment.cells import Shapes, cut_pairs, lay_out_cells
from headwise.data.shards import as_ragged
from headwise.errors import DataError
from tests.data.pairs.alignment.pairs import draw_pairs


def test_cells_are_those_of_two_loops() -> None:
    pairs = draw_pairs(31, words=11, longest=7, seed=1)
    shapes = Shapes.of(pairs.source_lengths, pairs.target_lengths)
    cells = lay_out_cells(as_ragged(pairs.source), as_ragged(pairs.target), shapes)
    looped = [
        (x, y, i)
        for xs, ys in zip(pairs.source, pairs.target, strict=True)
        for y in ys
        for i, x in enumerate(xs)
    ]
    assert list(zip(cells.source, cells.target, cells.place, strict=True)) == looped
    assert cells.num_cells.sum() == len(looped)
    assert cells.target_tokens.tolist() == [y for ys in pairs.target for y in ys]
    # Cells of the same shape, target and source position have the same number, others another one.
    names = [
        (len(xs), len(ys), j, i)
        for xs, ys in zip(pairs.source, pairs.target, strict=True)
        for j in range(len(ys))
        for i in range(len(xs))
    ]
    known: dict[int, tuple[int, int, int, int]] = {}
    for number, name in zip(cells.shape_cell.tolist(), names, strict=True):
        assert known.setdefault(number, name) == name
    assert len(set(known.values())) == len(known)


def test_blocks_hold_every_pair_once_in_order() -> None:
    pairs = draw_pairs(31, words=11, longest=7, seed=2)
    blocks = list(cut_pairs(pairs.source_lengths, pairs.target_lengths, cells=40))
    assert np.concatenate(blocks).tolist() == list(range(31))
    assert len(blocks) > 5
    assert min(map(len, blocks)) >= 1


def test_a_pair_without_words_is_refused() -> None:
    source, target = as_ragged([[5], []]), as_ragged([[5], [7]])
    with pytest.raises(DataError, match="has an empty side"):
        lay_out_cells(source, target, Shapes.of(source.lengths, target.lengths))
