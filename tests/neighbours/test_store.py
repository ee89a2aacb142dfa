"""A store on disk: what was written is read, an interrupted build goes on, damage is found in every
file, and other models are refused."""

from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest
import torch

from headwise.errors import CheckpointError, UsageError
from headwise.neighbours import writing
from headwise.neighbours.store import NeighbourStore, StoreHeader
from headwise.neighbours.writing import EntryWriter
from headwise.storage import write_manifest
from tests.neighbours.stores import REQUEST, line_of, make_store, model_of

DIM = 5


def some_keys() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(15, DIM), torch.randint(4, 99, (15,))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    keys, tokens = some_keys()
    store = make_store(tmp_path / "store", keys, tokens)
    assert [one.entries for one in store.header.shards] == [6, 6, 3]
    read = np.concatenate([block for _, block in store.key_blocks(4)])
    np.testing.assert_array_equal(read, keys.numpy())
    np.testing.assert_array_equal(store.values, tokens.numpy())
    for number in range(15):
        entry = store.show(number)
        line = number // 3 + 1
        assert (entry.line, entry.position, entry.token) == (line, number % 3, tokens[number])
        assert (entry.source, entry.target) == (f"source {line} ä", f"target {line} 词")


@pytest.mark.parametrize("done", range(5))
def test_an_interrupted_build_goes_on_to_the_same_files(done: int, tmp_path: Path) -> None:
    keys, tokens = some_keys()
    make_store(tmp_path / "whole", keys, tokens)
    writer = EntryWriter.begin(tmp_path / "cut", model_of(DIM), REQUEST)
    writer.shard_entries = 6
    for number in range(done):
        part = slice(3 * number, 3 * number + 3)
        writer.add([line_of(number + 1, keys[part], tokens[part].tolist())], read=number + 1)
    assert (tmp_path / "cut").exists() == (done >= 2)
    if done >= 2:
        (tmp_path / "cut" / "00007.keys").write_bytes(b"of a shard that was at work")
        with pytest.raises(UsageError, match="not finished"):
            NeighbourStore.open(tmp_path / "cut")
    again = EntryWriter.begin(tmp_path / "cut", model_of(DIM), REQUEST)
    again.shard_entries = 6
    for number in range(again.num_read, 5):
        part = slice(3 * number, 3 * number + 3)
        again.add([line_of(number + 1, keys[part], tokens[part].tolist())], read=number + 1)
    again.finish(read=5)
    for file in sorted((tmp_path / "whole").iterdir()):
        assert (tmp_path / "cut" / file.name).read_bytes() == file.read_bytes()
    assert len(list((tmp_path / "cut").iterdir())) == len(list((tmp_path / "whole").iterdir()))


def test_a_build_killed_within_a_shard_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, tokens = some_keys()
    make_store(tmp_path / "whole", keys, tokens)
    publish = writing.publish_file
    files: list[Path] = []

    def kill(file: Path) -> AbstractContextManager[Path]:
        files.append(file)
        if len(files) == 3:
            raise KeyboardInterrupt
        return publish(file)

    monkeypatch.setattr(writing, "publish_file", kill)
    with pytest.raises(KeyboardInterrupt):
        make_store(tmp_path / "cut", keys, tokens)
    assert len(list((tmp_path / "cut").iterdir())) == 3
    make_store(tmp_path / "cut", keys, tokens)
    for file in (tmp_path / "whole").iterdir():
        assert (tmp_path / "cut" / file.name).read_bytes() == file.read_bytes()


def test_damage_is_found_in_every_file(tmp_path: Path) -> None:
    make_store(tmp_path / "store", *some_keys())
    for file in sorted((tmp_path / "store").iterdir()):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
        with pytest.raises(CheckpointError) as error:
            NeighbourStore.open(tmp_path / "store")
        assert error.value.exit_status == 3
        assert "use another copy of the store or build it again" in error.value.en
        assert "请换用其他副本或重新建立" in error.value.zh
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    NeighbourStore.open(tmp_path / "store")


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="not a store"):
        NeighbourStore.open(tmp_path)
    (tmp_path / "file").write_text("a")
    with pytest.raises(UsageError, match="no store"):
        EntryWriter.begin(tmp_path, model_of(DIM), REQUEST)
    write_manifest(tmp_path, kind="bundle")
    with pytest.raises(CheckpointError, match="kind 'bundle'"):
        NeighbourStore.open(tmp_path)
    with pytest.raises(CheckpointError, match="not that of a store"):
        EntryWriter.read(tmp_path)
    (tmp_path / "empty").mkdir()
    writing.write_header(tmp_path / "empty", StoreHeader(model_of(DIM), (), (), None, None), {})
    with pytest.raises(UsageError, match="no entry"):
        NeighbourStore.open(tmp_path / "empty")


def test_another_model_and_another_task_are_refused(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", *some_keys())
    store.check_model("f" * 64, "language_modeling", model="m")
    with pytest.raises(UsageError, match="another model"):
        store.check_model("e" * 64, "language_modeling", model="m")
    with pytest.raises(UsageError, match="task translation"):
        store.check_model("f" * 64, "translation", model="m")
    other = model_of(DIM, fingerprint="e" * 64)
    with pytest.raises(UsageError, match="begun with another model"):
        EntryWriter.extend(tmp_path / "store", other, REQUEST)
    with pytest.raises(UsageError, match="exists already"):
        EntryWriter.begin(tmp_path / "store", model_of(DIM), REQUEST)
    writer = EntryWriter.extend(tmp_path / "store", model_of(DIM), REQUEST)
    writer.shard_entries = 1
    writer.add([line_of(6, torch.randn(1, DIM), [4])], read=1)
    with pytest.raises(UsageError, match="other texts"):
        EntryWriter.extend(tmp_path / "store", model_of(DIM), {"texts": ["else"], "lines": 1})


def test_a_state_too_large_for_half_precision_is_refused(tmp_path: Path) -> None:
    writer = EntryWriter.begin(tmp_path / "store", model_of(DIM, key_type="float16"), REQUEST)
    writer.add([line_of(1, torch.full((2, DIM), 1e6), [4, 5])], read=1)
    with pytest.raises(UsageError, match="--keys float32"):
        writer.finish(read=1)
    assert not (tmp_path / "store").exists()


def test_a_refused_text_leaves_a_store_as_it_was(tmp_path: Path) -> None:
    EntryWriter.begin(tmp_path / "new", model_of(DIM), REQUEST).finish(read=0)
    assert not (tmp_path / "new").exists()
    store = make_store(tmp_path / "store", *some_keys())
    writer = EntryWriter.extend(tmp_path / "store", model_of(DIM), REQUEST)
    writer.add([line_of(1, torch.full((2, DIM), torch.inf), [4, 5])], read=1)
    with pytest.raises(UsageError, match="not finite"):
        writer.finish(read=1)
    assert NeighbourStore.open(tmp_path / "store").header == store.header
