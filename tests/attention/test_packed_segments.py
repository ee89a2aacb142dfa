"""Sentences of packed rows, counted by hand."""

import pytest
import torch

from headwise.attention.kernels.linear import LinearAttention
from headwise.attention.kernels.linformer import LinformerAttention
from headwise.attention.kernels.performer import PerformerAttention
from headwise.attention.kernels.reformer import ReformerAttention
from headwise.attention.masks import Mask, padding, segments
from headwise.attention.multi_head import Kernel
from headwise.attention.packed_segments import find_sentences, line_up
from headwise.errors import MaskError


def test_runs_of_equal_numbers() -> None:
    numbers = torch.tensor([[1, 1, 2, 3, 3, 3, 0], [1, 1, 1, 1, 1, 0, 0]])
    found = find_sentences(segments(numbers, numbers), 7, torch.device("cpu"), kind="bigbird")
    assert found.start.tolist() == [[0, 0, 2, 3, 3, 3, 6], [0, 0, 0, 0, 0, 5, 5]]
    assert found.end.tolist() == [[2, 2, 3, 6, 6, 6, 7], [5, 5, 5, 5, 5, 7, 7]]
    assert found.rows == "packed"
    assert found.is_inside.all()


def test_without_segments_a_row_is_one_sentence() -> None:
    for mask, rows in ((Mask(), "whole"), (padding(torch.tensor([[True, False, True]])), "padded")):
        found = find_sentences(mask, 3, torch.device("cpu"), kind="bigbird")
        assert (found.start.tolist(), found.end.tolist(), found.rows) == (
            [[0, 0, 0]],
            [[3, 3, 3]],
            rows,
        )


def test_the_sentence_of_a_padded_row_goes_from_its_first_real_token_to_its_last() -> None:
    real = torch.tensor([[0, 0, 1, 0, 1], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0]]).bool()
    once_more = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 1, 1], [1, 1, 1, 1, 1]]).bool()
    found = find_sentences(
        padding(real) & padding(once_more), 5, torch.device("cpu"), kind="bigbird"
    )
    assert found.start.tolist() == [[2] * 5, [0] * 5, [0] * 5]
    assert found.end.tolist() == [[5] * 5, [2] * 5, [5] * 5]
    assert found.is_inside.tolist() == [
        [False] * 2 + [True] * 3,
        [True] * 2 + [False] * 3,
        [True] * 5,
    ]
    numbers = torch.tensor([[1, 1, 2, 2, 2]]).expand(3, -1)
    both = find_sentences(
        padding(real) & segments(numbers, numbers), 5, torch.device("cpu"), kind="bigbird"
    )
    assert (both.rows, both.end.tolist()[0]) == ("packed", [2, 2, 5, 5, 5])


def test_a_sentence_in_two_pieces_is_refused() -> None:
    whole = torch.tensor([[1, 1, 1, 2, 0, 0]])
    # Padding anywhere and any order of numbers are fine.
    for numbers in (
        [[1, 0, 2, 2, 0, 3]],
        [[3, 3, 1, 0, 0, 2]],
    ):
        find_sentences(
            segments(torch.tensor(numbers), torch.tensor(numbers)),
            6,
            torch.device("cpu"),
            kind="bigbird",
        )
    for numbers in ([[1, 1, 2, 2, 1, 0]], [[1, 0, 1, 2, 2, 2]]):
        broken = segments(torch.tensor(numbers), torch.tensor(numbers))
        for mask in (broken, broken & segments(torch.ones_like(whole), torch.ones_like(whole))):
            with pytest.raises(
                MaskError,
                match=r"kind=bigbird .* comes back after .* \(row 0\).*full, .*window$",
            ):
                find_sentences(mask, 6, torch.device("cpu"), kind="bigbird")


def test_several_divisions_are_one_finer_division() -> None:
    """However large the numbers are: shifted into one word, 2²⁰ of the second was 1 of the
    first."""
    generator = torch.Generator().manual_seed(5)
    first, second, third = (torch.randint(0, 3, (2, 17), generator=generator) for _ in range(3))
    numbers = [(first - 1) << 62, second << 41, third]
    order, run = line_up(numbers)
    sentence = torch.empty_like(run).scatter(1, order, run)
    same = torch.stack([one[:, :, None] == one[:, None] for one in numbers]).all(0)
    assert torch.equal(sentence[:, :, None] == sentence[:, None], same)
    # Counted from 0 without a gap, sorted by the first, then by the second, then by the third.
    assert [row.unique().tolist() for row in run] == [
        list(range(int(row.max()) + 1)) for row in run
    ]
    key = 9 * first + 3 * second + third
    assert torch.equal(sentence[:, :, None] < sentence[:, None], key[:, :, None] < key[:, None])


def test_a_sentence_keeps_the_order_it_is_given_in() -> None:
    order, run = line_up([torch.tensor([[7, -1, 7, -1, 7]])], torch.tensor([4, 3, 2, 1, 0]))
    assert (order.tolist(), run.tolist()) == ([[3, 1, 4, 2, 0]], [[0, 0, 1, 1, 1]])


def test_negative_numbers_are_sentences_like_others() -> None:
    numbers = torch.tensor([[-1] * 2 + [5] + [-2] * 3 + [0]])
    found = find_sentences(segments(numbers, numbers), 7, torch.device("cpu"), kind="longformer")
    assert found.start.tolist() == [[0, 0, 2, 3, 3, 3, 6]]
    broken = torch.tensor([[-1, 5, -1]])
    with pytest.raises(MaskError, match=r"comes back after another one \(row 0\)"):
        find_sentences(segments(broken, broken), 3, torch.device("cpu"), kind="longformer")


@pytest.mark.parametrize(
    "kernel",
    [
        LinearAttention(chunk=4),
        PerformerAttention(5, 16, chunk=4),
        LinformerAttention(3, 8, chunk=4),
        ReformerAttention(5, num_buckets=2, num_rounds=2, window=8),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_joined_segments_of_large_numbers_do_not_leak(kernel: Kernel) -> None:
    """What another sentence says changes nothing, whichever of two numberings tells them apart."""
    q, v = torch.randn(2, 1, 1, 8, 5, generator=torch.Generator().manual_seed(3)).double()
    if isinstance(kernel, torch.nn.Module):
        kernel.double()
    one, other = (
        torch.tensor([numbers]) for numbers in ([1] * 4 + [2] * 4, [(1 << 20) + 1] * 4 + [1] * 4)
    )
    changed_q, changed_v = q.clone(), v.clone()
    changed_q[:, :, 4:], changed_v[:, :, 4:] = 3.0, 100.0
    # Places of their own for queries and keys where the tables are not the same ones.
    for cross in (
        False,
        True,
    ):
        mask = segments(one, one.clone() if cross else one) & segments(
            other, other.clone() if cross else other
        )
        if cross and isinstance(kernel, ReformerAttention):
            continue
        before = kernel(q, q, v, mask)
        after = kernel(changed_q, changed_q, changed_v, mask)
        torch.testing.assert_close(after[:, :, :4], before[:, :, :4])
