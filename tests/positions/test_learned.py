"""Learned positions: a look-up, and no guessing past what was learned."""

import pytest
import torch

from headwise.errors import UsageError
from headwise.positions.learned import LearnedPositions


def test_is_a_look_up() -> None:
    positions = LearnedPositions(5, max_length=7)
    place = torch.tensor([[0, 1, 2], [0, 6, 0]])
    assert positions(place, length=7).equal(positions.table.weight[place])


def test_longer_sequences_are_refused() -> None:
    positions = LearnedPositions(5, max_length=7)
    message = (
        "a sequence of 8 positions, but only 7 were learned; shorten the text, train with a "
        "larger position.max_length"
    )
    with pytest.raises(UsageError, match=message):
        positions(torch.tensor([[0]]), length=8)
