import itertools
import json
from pathlib import Path

import pytest
import torch
from benchmarks.made_data import plan_row_lengths

from headwise.data import batching
from headwise.data.batching import (
    Cursor,
    Share,
    batches,
    evaluation_batches,
    plan_rows,
)
from headwise.data.packing import NAMES, PackedBatch, unpack_pairs
from headwise.data.shards import TokenStore
from headwise.errors import CheckpointError, UsageError

from .made import draw_pairs, make_store

ROWS = {"source_row": 72, "target_row": 80}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TokenStore:
    """487 pairs in chunks of about 100, so that a few batches cross chunks and epochs."""
    monkeypatch.setattr("headwise.data.order.CHUNK_PAIRS", 100)
    monkeypatch.setattr(batching, "CHUNK_PAIRS", 100)
    return make_store(tmp_path / "store", draw_pairs(487))


def take(store: TokenStore, count: int, **options) -> list[tuple[PackedBatch, Cursor]]:
    return list(
        itertools.islice(batches(store, **{"seed": 3, "rows": 6, **ROWS, **options}), count)
    )


def same(left: PackedBatch, right: PackedBatch) -> bool:
    return all(torch.equal(getattr(left, name), getattr(right, name)) for name in NAMES)


def test_every_pair_once_an_epoch(store: TokenStore) -> None:
    expected = sorted(draw_pairs(487))
    seen = []
    for batch, cursor in take(store, 400, rows=1):
        if cursor.epoch == 2:
            break
        seen += unpack_pairs(batch)
    assert cursor.epoch == 2, "the stream goes on from epoch to epoch"
    assert len(seen) >= 2 * 487
    assert sorted(seen[:487]) == sorted(seen[487 : 2 * 487]) == expected
    assert seen[:487] != seen[487 : 2 * 487]


def test_the_stream_is_a_function_of_the_seed(store: TokenStore) -> None:
    first, again, other = take(store, 5), take(store, 5), take(store, 5, seed=4)
    assert all(same(a, b) for (a, _), (b, _) in zip(first, again, strict=True))
    assert not same(first[0][0], other[0][0])


def test_resuming_anywhere_continues_the_stream(store: TokenStore) -> None:
    stream = take(store, 53, rows=5)
    assert {cursor.epoch for _, cursor in stream} >= {0, 1, 2}
    for number in range(0, 51, 5):
        cursor = Cursor.from_json(json.loads(json.dumps(stream[number][1].to_json())))
        for (resumed, after), (batch, expected) in zip(
            take(store, 2, rows=5, cursor=cursor), stream[number + 1 :], strict=False
        ):
            assert same(resumed, batch)
            assert after == expected


@pytest.mark.parametrize(
    ("num_processes", "accumulation"),
    [(1, 3), (2, 1), (3, 1), (4, 1), (2, 2), (2, 4), (3, 2), (4, 3), (6, 1)],
)
def test_processes_share_what_one_would_see(
    store: TokenStore, num_processes: int, accumulation: int
) -> None:
    alone = take(store, 12)
    shares = [Share(number, num_processes, accumulation) for number in range(num_processes)]
    number, updates = shares[0].num_batches, 12 // accumulation
    taken = [take(store, updates * number, share=share) for share in shares]
    for update in range(updates):
        rows = alone[update * accumulation : (update + 1) * accumulation]
        parts = [part[update * number : (update + 1) * number] for part in taken]
        for name in NAMES:
            whole = torch.cat([getattr(batch, name) for batch, _ in rows])
            assert torch.equal(
                torch.cat([getattr(batch, name) for part in parts for batch, _ in part]), whole
            )
        assert {part[-1][1] for part in parts} == {rows[-1][1]}
        assert max(batch.num_rows for part in parts for batch, _ in part) <= 6


def test_whole_batches_stay_whole() -> None:
    """So that dropout, which belongs to a batch, is the same for every number of processes that
    divides accumulation.
    """
    for num_processes in (1, 2, 3, 6):
        cuts = [Share(number, num_processes, 6).cuts(7) for number in range(num_processes)]
        assert sorted({cut for part in cuts for cut in part}) == [0, 7, 14, 21, 28, 35, 42]


@pytest.mark.parametrize(("process", "num_processes"), [(0, 7), (2, 2), (-1, 2), (0, 0)])
def test_rows_that_cannot_be_shared(store: TokenStore, process: int, num_processes: int) -> None:
    with pytest.raises(UsageError, match="6 rows cannot be shared"):
        take(store, 1, share=Share(process, num_processes))


@pytest.mark.parametrize(
    ("share", "rows", "message"),
    [
        (Share(0, 2, 1), 1, "1 row cannot .* raise training.batch_tokens to 26 or more"),
        (Share(0, 5, 2), 2, "4 rows cannot .* raise training.batch_tokens to 39 or more"),
    ],
)
def test_the_refusal_of_a_share_names_the_batch_that_suffices(
    share: Share, rows: int, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        share.check(rows, 13)


def test_a_pair_longer_than_a_row(store: TokenStore) -> None:
    with pytest.raises(
        UsageError, match=r"a source sentence has \d+ tokens with its end, a row holds 8"
    ):
        take(store, 1, source_row=8)


@pytest.mark.parametrize(
    "data", [{}, {"epoch": 0, "chunk": 0, "row": -1}, {"epoch": 0, "chunk": True, "row": 0}]
)
def test_a_cursor_that_is_none(data: dict[str, int]) -> None:
    with pytest.raises(CheckpointError, match="is not a position in the data"):
        Cursor.from_json(data)


def test_a_cursor_of_other_data(store: TokenStore) -> None:
    with pytest.raises(CheckpointError, match="chunk 99 of epoch 0 is asked for"):
        take(store, 1, cursor=Cursor(0, 99, 0))


@pytest.mark.parametrize("num_processes", [1, 3])
def test_evaluation_sees_every_pair_once(store: TokenStore, num_processes: int) -> None:
    parts = [
        list(evaluation_batches(store, rows=7, process=p, num_processes=num_processes, **ROWS))
        for p in range(num_processes)
    ]
    everything = [batch for part in parts for batch in part]
    assert sorted(pair for batch in everything for pair in unpack_pairs(batch)) == sorted(
        draw_pairs(487)
    )
    assert {batch.source.shape for batch in everything} == {(7, 72)}
    assert {batch.target_output.shape for batch in everything} == {(7, 80)}


def test_a_store_smaller_than_a_batch(tmp_path: Path) -> None:
    store = make_store(tmp_path / "small", draw_pairs(3))
    batch, cursor = take(store, 1, rows=11)[0]
    assert batch.num_rows == 11
    assert cursor.epoch > 2


def test_rows_in_the_proportion_of_the_corpus(tmp_path: Path) -> None:
    assert plan_rows(1000, 1000, 128) == (128, 128)
    assert plan_rows(875, 1000, 128) == (112, 128)  # exactly 8 x 14
    assert plan_rows(964, 1000, 128) == (124, 128)  # 120 and 128 would both miss by 3 %
    for source_tokens in range(500, 2000, 7):
        source_row, target_row = plan_rows(source_tokens, 1000, 128)
        assert abs(source_row / target_row / (source_tokens / 1000) - 1) <= 0.016
    store = make_store(tmp_path / "store", [([5] * 40, [6] * 10), *draw_pairs(11, longest=9)])
    assert plan_row_lengths(store, 16) == (48, 16)  # the longest sentence still fits
