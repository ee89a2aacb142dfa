import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.data.batching import plan_rows
from headwise.data.row_assignment import pack_rows

from .made import draw_lengths


def check(
    row: np.ndarray, source: np.ndarray, target: np.ndarray, source_row: int, target_row: int
) -> None:
    """Each pair has one row, rows are numbered without gaps, none is empty or overfull."""
    assert (np.bincount(row) > 0).all()
    assert row.min() == 0
    assert np.bincount(row, source).max() <= source_row
    assert np.bincount(row, target).max() <= target_row


@given(
    st.lists(st.tuples(st.integers(1, 31), st.integers(1, 23)), min_size=1, max_size=200),
    st.integers(31, 67),
    st.integers(23, 53),
)
@settings(max_examples=60, deadline=None)
def test_every_pair_has_a_row_that_holds_it(
    pairs: list[tuple[int, int]], source_row: int, target_row: int
) -> None:
    source, target = np.array(pairs).T
    row = pack_rows(source, target, source_row=source_row, target_row=target_row)
    check(row, source, target, source_row, target_row)


LENGTHS = {
    "captions": {"mean": 14.0, "longest": 60},
    "chats": {"mean": 8.0, "longest": 40},
    "manuals": {"mean": 20.0, "longest": 120},
    "news": {"mean": 27.0, "longest": 120},
}


@pytest.mark.parametrize("kind", LENGTHS)
def test_under_two_percent_is_padding(kind: str) -> None:
    source, target = draw_lengths(16_384, key=kind, **LENGTHS[kind])
    source, target = source + 1, target + 1
    source_row, target_row = plan_rows(int(source.sum()), int(target.sum()), 128)
    fits = source <= source_row
    source, target = source[fits], target[fits]
    begin = time.process_time()  # others may use the machine as well
    row = pack_rows(source, target, source_row=source_row, target_row=target_row)
    seconds = time.process_time() - begin
    check(row, source, target, source_row, target_row)
    num_rows = row.max() + 1
    assert 1 - source.sum() / (num_rows * source_row) < 0.02
    assert 1 - target.sum() / (num_rows * target_row) < 0.02
    assert len(source) / seconds > 20_000  # some 200,000 a second on a free core


def test_packing_is_a_pure_function() -> None:
    source, target = draw_lengths(997, key="pure")
    rows = [pack_rows(source, target, source_row=96, target_row=128) for _ in range(2)]
    assert (rows[0] == rows[1]).all()


def test_a_row_that_one_pair_fills() -> None:
    source, target = np.array([7, 7, 1]), np.array([1, 5, 4])
    row = pack_rows(source, target, source_row=8, target_row=5)
    check(row, source, target, 8, 5)
    assert row[0] == row[2] != row[1]  # the only way into two rows
