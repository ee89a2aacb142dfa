"""Spans of packed rows equal those of their sentences one by one."""

import torch

from headwise.models.parallel.segment_spans import (
    copied_index,
    lengths_beside,
    segment_lengths,
    segment_starts,
)

SOURCE = torch.tensor([[1, 1, 1, 2, 2, 2, 2, 2, 3, 0, 0], [1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4]])
TARGET = torch.tensor(
    [[1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 0], [1, 2, 2, 2, 2, 2, 3, 3, 4, 4, 4, 4, 4]]
)


def positions(segment: torch.Tensor) -> torch.Tensor:
    rows = []
    for row in segment.tolist():
        rows.append([row[:i].count(number) for i, number in enumerate(row)])
    return torch.tensor(rows)


def test_lengths_and_starts_are_those_of_each_sentence() -> None:
    lengths = segment_lengths(SOURCE, 5)
    assert lengths.tolist() == [[2, 3, 5, 1, 0, 0], [0, 2, 3, 4, 2, 0]]
    assert lengths_beside(TARGET, SOURCE)[0].tolist() == [3] * 2 + [5] * 7 + [1] * 3 + [2]
    assert segment_starts(TARGET, SOURCE)[1].tolist() == [0] + [2] * 5 + [5] * 2 + [9] * 5


def test_a_target_position_copies_the_source_token_at_the_same_share_of_the_sentence() -> None:
    found = copied_index(TARGET, positions(TARGET), SOURCE)
    for row in range(2):
        for number in (1, 2, 3):
            source = (SOURCE[row] == number).nonzero().flatten().tolist()
            here = found[row][TARGET[row] == number].tolist()
            gaps = max(1, len(here) - 1)
            # Half is rounded up.
            expected = [source[int(t * (len(source) - 1) / gaps + 0.5)] for t in range(len(here))]
            assert here == expected
            assert here[0] == source[0]
            if len(here) > 1:
                assert here[-1] == source[-1]
    assert found[0, -1] == 0, "padding copies the first token, which nothing reads"
