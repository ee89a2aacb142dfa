"""The heads: formulas, protection, and which states each decision reads."""

import pytest
import torch

from headwise.initialization import initialize
from headwise.models.parallel.edit_heads import MAX_INSERTIONS, EditHeads
from headwise.randomness import torch_generator

DIM, ROWS, POSITIONS = 11, 3, 7


def make(dim: int = DIM, max_insertions: int = 5) -> EditHeads:
    heads = EditHeads(dim, max_insertions=max_insertions)
    initialize(heads, torch_generator("heads"))
    return heads


def test_logits_are_those_of_the_formulas() -> None:
    heads, hidden = make(), torch.randn(ROWS, POSITIONS, DIM, generator=torch_generator("states"))
    everywhere = torch.ones(ROWS, POSITIONS, dtype=torch.bool)
    going = heads.deletion_logits(hidden, everywhere)
    counts = heads.insertion_logits(hidden)
    assert going.shape == (ROWS, POSITIONS, 2)
    assert counts.shape == (ROWS, POSITIONS - 1, 6)
    for row in range(ROWS):
        for place in range(POSITIONS):
            expected = heads.deletion.weight @ hidden[row, place]
            assert going[row, place].allclose(expected, atol=1e-6)
        for gap in range(POSITIONS - 1):
            left, right = heads.insertion.weight[:, :DIM], heads.insertion.weight[:, DIM:]
            expected = left @ hidden[row, gap] + right @ hidden[row, gap + 1]
            assert counts[row, gap].allclose(expected, atol=1e-6)


def test_what_must_not_go_is_never_deleted() -> None:
    hidden = 1e4 * torch.randn(ROWS, POSITIONS, DIM, generator=torch_generator("large"))
    may_go = torch.rand(ROWS, POSITIONS, generator=torch_generator("protected")) < 0.5
    chance = make().deletion_logits(hidden, may_go).softmax(-1)[..., 1]
    assert chance[~may_go].eq(0).all()
    assert chance[may_go].gt(0).any()


def test_a_gap_reads_both_neighbours_and_nothing_else() -> None:
    hidden = torch.randn(1, POSITIONS, DIM, generator=torch_generator("gap")).requires_grad_()
    make().insertion_logits(hidden)[0, 2].sum().backward()
    assert hidden.grad is not None
    read = hidden.grad[0].abs().sum(-1).gt(0).tolist()
    assert read == [False, False, True, True, False, False, False]


def test_weights_begin_with_the_variance_of_their_width() -> None:
    heads = EditHeads(256)
    initialize(heads, torch_generator("begin"))
    assert heads.insertion.weight.shape == (MAX_INSERTIONS + 1, 512)
    # Four standard errors of a standard deviation: 4 / √(2 · count).
    for weight in (heads.deletion.weight, heads.insertion.weight):
        tolerance = 4 / (2 * weight.numel()) ** 0.5
        assert weight.std().item() == pytest.approx(weight.shape[1] ** -0.5, rel=tolerance)
