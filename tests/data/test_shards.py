from pathlib import Path

import numpy as np
import pytest
from benchmarks.made_data import write_store

from headwise.data.shards import StoreWriter, TokenStore, as_ragged
from headwise.errors import CheckpointError, DataError, UsageError

from .made import draw_pairs, make_store


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_what_is_written_is_read(block: int, tmp_path: Path) -> None:
    pairs = draw_pairs(101)
    store = make_store(tmp_path / "store", pairs, block=block)
    assert len(store) == 101
    assert [(store.source(i).tolist(), store.target(i).tolist()) for i in range(101)] == pairs
    assert store.source_lengths.tolist() == [len(source) for source, _ in pairs]
    assert store.total_tokens["target"] == store.target_lengths.sum()
    assert store.max_length["source"] == max(len(source) for source, _ in pairs)
    source, target = store.gather(np.array([97, 3, 3]))
    assert [part.tolist() for part in source.split()] == [pairs[97][0], pairs[3][0], pairs[3][0]]
    assert [part.tolist() for part in target.split()] == [pairs[97][1], pairs[3][1], pairs[3][1]]


def test_the_block_size_leaves_no_trace(tmp_path: Path) -> None:
    stores = [make_store(tmp_path / str(block), draw_pairs(53), block=block) for block in (3, 50)]
    assert stores[0].fingerprint == stores[1].fingerprint
    assert make_store(tmp_path / "other", draw_pairs(54)).fingerprint != stores[0].fingerprint


@pytest.mark.parametrize(("size", "width"), [(65_536, 2), (65_537, 4)])
def test_tokens_take_two_bytes_while_they_fit(size: int, width: int, tmp_path: Path) -> None:
    sizes = {"source": size, "target": 8}
    store = write_store(tmp_path / "store", [([size - 1, 5, 6], [4])], vocabulary_sizes=sizes)
    assert store.source(0).tolist() == [size - 1, 5, 6]
    assert (tmp_path / "store/source.tokens").stat().st_size == 3 * width


def write_one_and_fail(writer: StoreWriter) -> None:
    writer.start_corpus("a")
    writer.add(as_ragged([[4]]), as_ragged([[5]]))
    raise KeyError


def test_an_empty_store_and_a_failed_one_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no pair is left to store"):
        make_store(tmp_path / "store", [])
    with (
        pytest.raises(KeyError),
        StoreWriter(tmp_path / "store", vocabulary_sizes={"source": 9, "target": 9}) as writer,
    ):
        write_one_and_fail(writer)
    assert list(tmp_path.iterdir()) == []
    make_store(tmp_path / "store", draw_pairs(3))
    with pytest.raises(UsageError, match="exists already"):
        make_store(tmp_path / "store", draw_pairs(3))


@pytest.mark.parametrize("name", ["source.tokens", "target.offsets", "store.json"])
def test_a_flipped_bit_is_noticed(name: str, tmp_path: Path) -> None:
    make_store(tmp_path / "store", draw_pairs(31))
    path = tmp_path / "store" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="is damaged"):
        TokenStore(tmp_path / "store")


@pytest.mark.parametrize("content", ["{}", "[]", '{"pairs": "x"}'])
def test_parts_that_do_not_fit_are_noticed_unverified(content: str, tmp_path: Path) -> None:
    make_store(tmp_path / "store", draw_pairs(31))
    (tmp_path / "store/store.json").write_text(content)
    with pytest.raises(CheckpointError, match="do not fit together"):
        TokenStore(tmp_path / "store", verify=False)


def test_a_short_file_is_noticed_unverified(tmp_path: Path) -> None:
    make_store(tmp_path / "store", draw_pairs(31))
    path = tmp_path / "store/source.tokens"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(CheckpointError, match="do not fit together"):
        TokenStore(tmp_path / "store", verify=False)


def test_no_pair_beyond_the_last(tmp_path: Path) -> None:
    with pytest.raises(IndexError, match="pair 3 of 3"):
        make_store(tmp_path / "store", draw_pairs(3)).source(3)
