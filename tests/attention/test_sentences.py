"""Sentences of packed rows, counted by hand."""

import pytest
import torch

from headwise.attention.masks import Mask, padding, segments
from headwise.attention.sentences import find_sentences
from headwise.errors import MaskError


def test_runs_of_equal_numbers() -> None:
    numbers = torch.tensor([[1, 1, 2, 3, 3, 3, 0], [1, 1, 1, 1, 1, 0, 0]])
    found = find_sentences(segments(numbers, numbers), 7, torch.device("cpu"), kind="bigbird")
    assert found.start.tolist() == [[0, 0, 2, 3, 3, 3, 6], [0, 0, 0, 0, 0, 5, 5]]
    assert found.end.tolist() == [[2, 2, 3, 6, 6, 6, 7], [5, 5, 5, 5, 5, 7, 7]]
    assert found.is_packed


def test_without_segments_a_row_is_one_sentence() -> None:
    for mask in (Mask(), padding(torch.tensor([[True, False, True]]))):
        found = find_sentences(mask, 3, torch.device("cpu"), kind="bigbird")
        assert (found.start.tolist(), found.end.tolist(), found.is_packed) == ([[0, 0, 0]], [[3, 3, 3]], False)


def test_a_sentence_in_two_pieces_is_refused() -> None:
    whole = torch.tensor([[1, 1, 1, 2, 0, 0]])
    for numbers in ([[1, 0, 2, 2, 0, 3]], [[3, 3, 1, 0, 0, 2]]):  # filling anywhere and any order of numbers are fine
        find_sentences(segments(torch.tensor(numbers), torch.tensor(numbers)), 6, torch.device("cpu"), kind="bigbird")
    for numbers in ([[1, 1, 2, 2, 1, 0]], [[1, 0, 1, 2, 2, 2]]):
        broken = segments(torch.tensor(numbers), torch.tensor(numbers))
        for mask in (broken, broken & segments(torch.ones_like(whole), torch.ones_like(whole))):
            with pytest.raises(
                MaskError, match=r"kind=bigbird .* comes back after another one \(row 0\).*window or fused"
            ):
                find_sentences(mask, 6, torch.device("cpu"), kind="bigbird")
