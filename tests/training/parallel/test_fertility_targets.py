"""Fertilities of packed rows against those of pairs one by one; they lead to the target's rows."""

import math

import numpy as np
import pytest
import torch

from headwise.data.packing import PackedBatch, build_rows, unpack_pairs
from headwise.data.pairs.alignment.aligner import fit_aligner
from headwise.data.pairs.alignment.lexical_table import LexicalTable
from headwise.data.pairs.alignment.links import count_fertilities, link_targets
from headwise.data.shards import as_ragged
from headwise.errors import DataError
from headwise.models.parallel.fertility import copy_by_fertility
from headwise.training.parallel.fertility_targets import (
    BatchAligner,
    fertility_loss,
    limit_fertilities,
)
from tests.data.pairs.alignment.pairs import MemoryPairs, draw_pairs


@pytest.fixture
def pairs() -> MemoryPairs:
    return draw_pairs(43, words=13, longest=7, seed=17)


@pytest.fixture
def table(pairs: MemoryPairs) -> LexicalTable:
    return fit_aligner(pairs, num_targets=17)


def pack(pairs: MemoryPairs) -> PackedBatch:
    source, target = as_ragged(pairs.source), as_ragged(pairs.target)
    return build_rows(source, target, source_row=20, target_row=22).batch()


def test_packed_rows_have_the_fertilities_of_their_pairs(
    pairs: MemoryPairs, table: LexicalTable
) -> None:
    batch = pack(pairs)
    fertility = BatchAligner.of(table, most=49).find_fertilities(batch)
    sources, targets = (as_ragged(side) for side in zip(*unpack_pairs(batch), strict=True))
    links = link_targets(table, sources, targets)
    expected = iter(count_fertilities(links, sources.lengths).split())
    for row in range(batch.num_rows):
        for number in range(1, int(batch.source_segment[row].max()) + 1):
            found = fertility[row, batch.source_segment[row] == number].tolist()
            assert found == [*next(expected).tolist(), 1]  # the end of the target
    assert (fertility[batch.source_segment == 0] == 0).all()


def test_copies_stand_where_the_target_stands(pairs: MemoryPairs, table: LexicalTable) -> None:
    batch = pack(pairs)
    fertility = BatchAligner.of(table, most=4).find_fertilities(batch)
    assert int(fertility.max()) == 4
    copies = copy_by_fertility(fertility, batch.source_segment, width=22)
    assert torch.equal(copies.segment, batch.target_segment)
    assert torch.equal(copies.position, batch.target_position)


def test_words_that_never_occurred_are_linked_along_the_diagonal(table: LexicalTable) -> None:
    batch = pack(MemoryPairs([[90, 91, 92]], [[93, 94, 95]]))
    assert BatchAligner.of(table, most=49).find_links(batch)[0, :4].tolist() == [0, 1, 2, 3]


def test_an_empty_source_gives_all_to_its_end(table: LexicalTable) -> None:
    batch = pack(MemoryPairs([[]], [[5, 7]]))
    assert BatchAligner.of(table, most=49).find_fertilities(batch)[0, :2].tolist() == [3, 0]


def test_what_is_too_many_goes_to_the_next_token() -> None:
    segment = torch.tensor([[1, 1, 1, 2, 2, 0], [1, 1, 1, 1, 1, 1]])
    position = torch.tensor([[0, 1, 2, 0, 1, 0], [0, 1, 2, 3, 4, 5]])
    fertility = torch.tensor([[7, 2, 0, 0, 4, 0], [0, 0, 1, 3, 2, 6]])
    limited = limit_fertilities(fertility, segment, position, most=3)
    assert limited.tolist() == [[3, 3, 3, 1, 3, 0], [3, 0, 1, 3, 2, 3]]
    assert torch.equal(limit_fertilities(limited, segment, position, most=3), limited)


def test_handing_on_at_once_is_handing_on_from_token_to_token(generator: torch.Generator) -> None:
    segment = torch.tensor([[1, 1, 1, 2, 3, 3, 3, 3, 0]])
    position = torch.tensor([[0, 1, 2, 0, 0, 1, 2, 3, 0]])
    following = [1, 2, 0, 3, 5, 6, 7, 4, 8]
    for _ in range(101):
        shares = torch.rand(1, 9, generator=generator) ** 3
        fertility = (7 * shares).long().masked_fill(segment == 0, 0)
        fertility[0, 3] = fertility[0, 3].clamp(max=2)
        expected, room = fertility[0].tolist(), {1: 6, 3: 8}
        if any(int(fertility[segment == number].sum()) > most for number, most in room.items()):
            continue
        while max(expected) > 2:
            here = next(token for token, copies in enumerate(expected) if copies > 2)
            expected[following[here]] += expected[here] - 2
            expected[here] = 2
        assert limit_fertilities(fertility, segment, position, most=2).tolist() == [expected]


def test_a_target_that_cannot_be_copied_is_refused() -> None:
    segment, position = torch.tensor([[1, 1, 2]]), torch.tensor([[0, 1, 0]])
    with pytest.raises(DataError, match="more than 3 times as long as its source"):
        limit_fertilities(torch.tensor([[3, 0, 4]]), segment, position, most=3)


def test_the_loss_is_that_of_the_real_tokens(generator: torch.Generator) -> None:
    segment = torch.tensor([[1, 1, 2, 0]])
    fertility = torch.tensor([[1, 0, 2, 0]])
    logits = torch.randn(1, 4, 3, generator=generator)
    expected = -sum(
        math.log(float(logits[0, token].softmax(-1)[value]))
        for token, value in enumerate([1, 0, 2])
    )
    assert fertility_loss(logits, fertility, segment).item() == pytest.approx(expected, rel=1e-5)


def test_a_table_is_looked_up_whole() -> None:
    table = LexicalTable(np.array([3, 12]), np.array([0.5, 0.25]), np.full(5, 0.1), 0.1, 2.0)
    aligner = BatchAligner.of(table, most=3)
    source, target = torch.tensor([0, 2, 2, 4]), torch.tensor([3, 2, 3, 4])
    found = aligner._look_up(source, target)
    assert found.tolist() == table.look_up(source.numpy(), target.numpy()).tolist()
    assert found.tolist() == [0.5, 0.25, 1e-9, 1e-9]
