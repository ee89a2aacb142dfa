import numpy as np
import torch

from headwise.data.packing import build_rows, empty_rows, join_tables, unpack_pairs
from headwise.data.shards import Ragged
from headwise.randomness import numpy_generator

from .made import draw_pairs


def ragged(sequences: list[list[int]]) -> Ragged:
    return Ragged(
        np.array([t for s in sequences for t in s]), np.array([len(s) for s in sequences])
    )


def build(pairs, source_row: int = 67, target_row: int = 71, shuffle=None):
    sides = [ragged([pair[side] for pair in pairs]) for side in (0, 1)]
    return build_rows(*sides, source_row=source_row, target_row=target_row, shuffle=shuffle)


def test_a_row_by_hand() -> None:
    batch = build([([11, 12], [21]), ([13], [22, 23])], 8, 7).batch()
    assert batch.source.shape == (1, 8)
    first, second = ([11, 12, 2], [13, 2]) if batch.source[0, 0] == 11 else ([13, 2], [11, 12, 2])
    assert batch.source[0].tolist() == first + second + [0, 0, 0]
    assert batch.source_segment[0].tolist() == [1] * len(first) + [2] * len(second) + [0, 0, 0]
    assert batch.source_position[0].tolist() == [*range(len(first)), *range(len(second)), 0, 0, 0]
    inputs, outputs = (
        ([1, 21, 1, 22, 23], [21, 2, 22, 23, 2])
        if first[0] == 11
        else ([1, 22, 23, 1, 21], [22, 23, 2, 21, 2])
    )
    assert batch.target_input[0].tolist() == inputs + [0, 0]
    assert batch.target_output[0].tolist() == outputs + [0, 0]
    assert (batch.num_pairs, batch.num_source_tokens, batch.num_target_tokens) == (2, 5, 5)


def test_unpacking_gives_the_pairs_back() -> None:
    pairs = draw_pairs(733)
    for shuffle in (None, numpy_generator("rows")):
        batch = build(pairs, shuffle=shuffle).batch()
        assert sorted(unpack_pairs(batch)) == sorted(pairs)
        assert batch.num_pairs == len(pairs)
        assert batch.num_target_tokens == sum(len(target) + 1 for _, target in pairs)


def test_segments_positions_and_shift_agree() -> None:
    batch = build(draw_pairs(311)).batch()
    assert torch.equal(batch.source_segment > 0, batch.source != 0)
    assert torch.equal(batch.source_segment.amax(1), batch.target_segment.amax(1))
    inside = batch.target_position > 0
    assert torch.equal(batch.target_input[inside], batch.target_output.roll(1, 1)[inside])
    starts = (batch.target_position == 0) & (batch.target_segment > 0)
    assert (batch.target_input[starts] == 1).all()
    for segment in (batch.source_segment, batch.target_segment):
        step = segment.diff(dim=1)
        assert (((step == 0) | (step == 1)) | (segment[:, 1:] == 0)).all()  # in order, padding last


def test_tables_join_and_move() -> None:
    table = join_tables([build(draw_pairs(31)), empty_rows(3, source_row=67, target_row=71)])
    batch = table.batch().to("cpu")
    assert batch.num_rows == len(table)
    assert batch.num_pairs == 31
    assert batch.source.dtype == torch.int64
    assert table.slice(0, 0).batch().num_pairs == 0
