"""Smaller batches that fit, by hand."""

import pytest

from headwise.planning.cost_prediction import MemoryParts
from headwise.planning.smaller_batches import Proposal, propose

MEMORY = MemoryParts(
    weights=10, gradients=0, optimizer=20, averaging=0, activations=8000, workspace=10
)


def test_the_global_batch_is_kept() -> None:
    proposal = propose(
        MEMORY, rows=16, row_tokens=24, accumulation=3, room=1300, loss_space=1 << 20
    )
    assert (proposal.batch_tokens, proposal.accumulation, proposal.parts) == (2 * 24, 24, 8)


@pytest.mark.parametrize(("devices", "parts"), [(1, 8), (2, 8), (4, 8)])
def test_devices_take_fewer_rows_at_a_time_only_when_batches_outnumber_them(
    devices: int, parts: int
) -> None:
    proposal = propose(
        MEMORY,
        rows=16,
        row_tokens=24,
        accumulation=1,
        room=1300,
        loss_space=1 << 20,
        devices=devices,
    )
    assert proposal.parts == parts
    assert proposal.total == 40 + 10 + 8000 // parts


def test_sharded_weights_are_divided() -> None:
    proposal = propose(
        MEMORY, rows=1, row_tokens=24, accumulation=1, room=1, loss_space=0, devices=4, sharded=True
    )
    assert (proposal.batch_tokens, proposal.total) == (None, 10)


def test_cutting_in_two_is_halving_and_in_more_is_not() -> None:
    assert (
        Proposal(60, 2, 1 << 30, 2)
        .describe()[0]
        .startswith("halve the batch: training.batch_tokens=60 ")
    )
    en, zh = Proposal(60, 512, 1 << 30, 256).describe()
    assert en.startswith(
        "cut the batch into 256 parts: training.batch_tokens=60 training.accumulation=512"
    )
    assert zh.startswith("请把批次分成 256 份：")
