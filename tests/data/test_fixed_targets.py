"""Targets of a fixed number of positions hold the tokens of the store and ends after them."""

import numpy as np
import pytest

from headwise.data.fixed_targets import fill_with_ends
from headwise.data.packing import build_rows
from headwise.data.shards import as_ragged
from headwise.errors import DataError
from headwise.text.tokenizer import EOS

TARGETS = [[5, 6, 7], [8], [], [9, 10, 11, 12]]


def test_every_target_is_followed_by_ends() -> None:
    found = fill_with_ends(as_ragged(TARGETS), 7)
    for target, filled in zip(TARGETS, found.split(), strict=True):
        assert filled.tolist() == target + [EOS] * (6 - len(target))


def test_packed_rows_hold_whole_targets() -> None:
    source = as_ragged([[4], [4, 5], [6], [7, 8, 9]])
    table = build_rows(source, fill_with_ends(as_ragged(TARGETS), 5), source_row=16, target_row=10)
    output = table.arrays["target_output"].reshape(-1, 5)
    assert sorted(row[row != EOS].tolist() for row in output) == sorted(TARGETS)
    assert (table.arrays["target_segment"] > 0).all()
    assert np.all(output[:, -1] == EOS)


def test_a_target_with_too_many_tokens_is_refused() -> None:
    with pytest.raises(DataError, match=r"5 tokens .* has 4 positions .*positions=5 or more"):
        fill_with_ends(as_ragged(TARGETS), 4)
