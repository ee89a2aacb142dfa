import contextlib
import json
import os
import shutil
from pathlib import Path

import pytest

from headwise import storage
from headwise.errors import CheckpointError, UsageError
from headwise.storage import (
    MANIFEST,
    publish_directory,
    publish_file,
    read_json,
    refuse_sealed,
    verify_directory,
    write_bytes,
    write_json,
    write_text,
)


def publish(path: Path, text: str = "hello", *, replace: bool = False) -> None:
    with publish_directory(path, kind="thing", replace=replace) as temporary:
        (temporary / "a.txt").write_text(text, encoding="utf-8")
        (temporary / "inner").mkdir()
        (temporary / "inner" / "b.bin").write_bytes(bytes(range(7)))


@pytest.fixture(name="thing")
def _thing(tmp_path: Path) -> Path:
    publish(tmp_path / "thing")
    return tmp_path / "thing"


def test_what_is_published_proves_itself(thing: Path) -> None:
    manifest = verify_directory(thing, kind="thing")
    assert list(manifest["files"]) == ["a.txt", "inner/b.bin"]
    assert [child.name for child in thing.parent.iterdir()] == ["thing"]


def test_an_existing_directory_is_replaced_only_when_asked(thing: Path) -> None:
    with pytest.raises(UsageError, match="exists already; choose another name or remove it"):
        publish(thing, "other")
    publish(thing, "other", replace=True)
    assert (thing / "a.txt").read_text(encoding="utf-8") == "other"
    assert [child.name for child in thing.parent.iterdir()] == ["thing"], "nothing is left beside it"


def test_a_failure_while_writing_leaves_the_old_state(thing: Path) -> None:
    with contextlib.suppress(KeyboardInterrupt), publish_directory(thing, kind="thing", replace=True) as temporary:
        (temporary / "a.txt").write_text("half", encoding="utf-8")
        raise KeyboardInterrupt
    assert (thing / "a.txt").read_text(encoding="utf-8") == "hello"
    assert [child.name for child in thing.parent.iterdir()] == ["thing"]


def test_every_byte_is_covered(thing: Path) -> None:
    for path in [thing / "a.txt", thing / "inner" / "b.bin"]:
        content = path.read_bytes()
        for position in range(len(content)):
            path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
            with pytest.raises(CheckpointError, match=r"is damaged .its SHA-256 is not the one written") as caught:
                verify_directory(thing, kind="thing")
            assert caught.value.file == path
        path.write_bytes(content)
    verify_directory(thing, kind="thing")


def test_a_file_that_is_missing_or_of_another_size(thing: Path) -> None:
    (thing / "a.txt").write_text("hello!", encoding="utf-8")
    with pytest.raises(CheckpointError, match="has 6 bytes, 5 were written; it is damaged"):
        verify_directory(thing, kind="thing")
    (thing / "a.txt").unlink()
    with pytest.raises(CheckpointError, match="is missing; use another copy"):
        verify_directory(thing, kind="thing")


def test_a_link_out_of_the_directory_is_refused(thing: Path, tmp_path: Path) -> None:
    shutil.move(thing / "a.txt", tmp_path / "outside.txt")
    (thing / "a.txt").symlink_to(tmp_path / "outside.txt")
    with pytest.raises(CheckpointError, match=r"names 'a.txt', which lies outside the directory"):
        verify_directory(thing, kind="thing")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "other"}, "describes a 'other', a 'thing' is needed"),
        ({"format": 2}, "has format 2, at most 1 can be read"),
        ({"format": "1"}, "has format 1, at most 1"),
        ({"files": []}, "a required entry is missing"),
        ({"files": {"../x": {"bytes": 1, "sha256": ""}}}, "names '../x', which lies outside"),
        ({"files": {"x" * 500_000: {}}}, r"names 'x{80}', which lies outside"),
        ({"files": {"a.txt": 5}}, "has 5 bytes, None were written"),
    ],
)
def test_a_manifest_that_lies(thing: Path, change: dict[str, object], message: str) -> None:
    manifest = json.loads((thing / MANIFEST).read_text(encoding="utf-8"))
    write_json(thing / MANIFEST, {**manifest, **change})
    with pytest.raises(CheckpointError, match=message):
        verify_directory(thing, kind="thing")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not readable JSON"),
        (b"\xff", "not readable JSON"),
        (b"[" * 100_000, "not readable JSON"),
        (b" " * (storage.MAX_MANIFEST_BYTES + 1), "has 1,048,577 bytes, more than the 1,048,576 allowed"),
        (None, "cannot be read .No such file or directory."),
    ],
)
def test_json_that_cannot_be_read(tmp_path: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        read_json(tmp_path / "x.json")


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_text(tmp_path / "x", "old")

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write_text(tmp_path / "x", "new")
    assert (tmp_path / "x").read_text(encoding="utf-8") == "old"
    assert [child.name for child in tmp_path.iterdir()] == ["x"]


def test_json_keeps_chinese_readable_and_refuses_what_is_not_a_number(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"名": [1, None]})
    assert (tmp_path / "x.json").read_text(encoding="utf-8") == '{\n  "名": [\n    1,\n    null\n  ]\n}\n'
    assert read_json(tmp_path / "x.json") == {"名": [1, None]}
    with pytest.raises(ValueError, match=r"not JSON compliant|Out of range"):
        write_json(tmp_path / "x.json", float("nan"))


@pytest.mark.parametrize("name", [".", "folder"])
def test_a_directory_is_not_a_file_to_write(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_bytes(Path(name), b"content")
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]


def test_missing_directories_of_a_file_are_made(tmp_path: Path) -> None:
    write_text(tmp_path / "a" / "b" / "small", "x")
    with publish_file(tmp_path / "c" / "d" / "large") as temporary:
        temporary.write_bytes(b"y")
    assert (tmp_path / "a" / "b" / "small").read_text(encoding="utf-8") == "x"
    assert (tmp_path / "c" / "d" / "large").read_bytes() == b"y"


def test_nothing_is_added_to_a_directory_with_a_manifest(thing: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(thing)
    for inside in (thing, thing / "new", thing / "inner" / "new", tmp_path / "link" / "new"):
        with pytest.raises(UsageError, match="whose files are sealed by checksums"):
            refuse_sealed(inside)
    with pytest.raises(UsageError, match="thing, whose files are sealed by checksums"):
        publish(thing / "another")
    verify_directory(thing, kind="thing")
    refuse_sealed(thing.parent / "new")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / MANIFEST).write_text('{"name": "an extension"}', encoding="utf-8")
    refuse_sealed(tmp_path / "foreign" / "new")
