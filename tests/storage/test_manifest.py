import json
import shutil
from pathlib import Path

import pytest

from headwise.errors import CheckpointError, UsageError
from headwise.storage import (
    MANIFEST,
    manifest_digest,
    refuse_sealed,
    sha256_of,
    verify_directory,
    write_json,
    write_sealed_json,
)
from tests.storage.things import publish


def test_what_is_published_proves_itself(thing: Path) -> None:
    manifest = verify_directory(thing, kind="thing")
    assert list(manifest["files"]) == ["a.txt", "inner/b.bin"]
    assert [child.name for child in thing.parent.iterdir()] == ["thing"]


def test_every_byte_is_covered(thing: Path) -> None:
    for path in [thing / "a.txt", thing / "inner" / "b.bin"]:
        content = path.read_bytes()
        for position in range(len(content)):
            path.write_bytes(
                content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]
            )
            with pytest.raises(
                CheckpointError, match=r"is damaged .its SHA-256 is not the one written"
            ) as caught:
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
        ({"kind": "other"}, "is of a directory of kind 'other', one of kind 'thing' is needed"),
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
    write_sealed_json(thing / MANIFEST, {**manifest, **change})
    with pytest.raises(CheckpointError, match=message):
        verify_directory(thing, kind="thing")


def test_a_damaged_manifest_is_called_that(thing: Path) -> None:
    """Whatever bit: the manifest is named, and none of the whole files that it lists."""
    path = thing / MANIFEST
    content = path.read_bytes()
    for bit in range(0, 8 * len(content), 7):  # every byte and, in turn, every bit of it
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(CheckpointError, match=r"is damaged \(") as caught:
            verify_directory(thing, kind="thing")
        assert caught.value.file == path
    path.write_bytes(content)
    verify_directory(thing, kind="thing")


def test_a_manifest_without_a_seal_is_an_older_one(thing: Path) -> None:
    """It is read as it is, and its directory is known by the same digest as before there were
    seals.
    """
    manifest = json.loads((thing / MANIFEST).read_text(encoding="utf-8"))
    sealed = manifest_digest(thing)
    assert manifest.pop("seal") == sealed
    write_json(thing / MANIFEST, manifest)
    assert list(verify_directory(thing, kind="thing")["files"]) == ["a.txt", "inner/b.bin"]
    assert manifest_digest(thing) == sha256_of(thing / MANIFEST) == sealed


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
