"""Sentences of packed rows, counted by hand."""

import torch

from headwise.attention.masks import Mask, padding, segments
from headwise.attention.sentences import find_sentences


def test_runs_of_equal_numbers() -> None:
    numbers = torch.tensor([[1, 1, 2, 3, 3, 3, 0], [1, 1, 1, 1, 1, 0, 0]])
    found = find_sentences(segments(numbers, numbers), 7, torch.device("cpu"))
    assert found.start.tolist() == [[0, 0, 2, 3, 3, 3, 6], [0, 0, 0, 0, 0, 5, 5]]
    assert found.end.tolist() == [[2, 2, 3, 6, 6, 6, 7], [5, 5, 5, 5, 5, 7, 7]]
    assert found.is_packed


def test_without_segments_a_row_is_one_sentence() -> None:
    for mask in (Mask(), padding(torch.tensor([[True, False, True]]))):
        found = find_sentences(mask, 3, torch.device("cpu"))
        assert (found.start.tolist(), found.end.tolist(), found.is_packed) == ([[0, 0, 0]], [[3, 3, 3]], False)
