import os
from pathlib import Path

import pytest

from headwise import storage
from headwise.errors import CheckpointError
from headwise.storage import (
    publish_file,
    read_json,
    read_sealed_json,
    write_bytes,
    write_json,
    write_sealed_json,
    write_text,
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not readable JSON"),
        (b"\xff", "not readable JSON"),
        (b"[" * 100_000, "not readable JSON"),
        (
            b" " * (storage.MAX_JSON_BYTES + 1),
            "has 1,048,577 bytes, more than the 1,048,576 allowed",
        ),
        (None, "cannot be read .No such file or directory."),
    ],
)
def test_json_that_cannot_be_read(tmp_path: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        read_json(tmp_path / "x.json")


def test_a_file_is_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert (tmp_path / "x.json").read_text(
        encoding="utf-8"
    ) == '{\n  "名": [\n    1,\n    null\n  ]\n}\n'
    assert read_json(tmp_path / "x.json") == {"名": [1, None]}
    with pytest.raises(ValueError, match=r"not JSON compliant|Out of range"):
        write_json(tmp_path / "x.json", float("nan"))


@pytest.mark.parametrize("name", [".", "folder"])
def test_a_directory_is_not_a_file_to_write(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_bytes(Path(name), b"content")
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]


VALUE = {"inputs": "ab", "row": 128, "名": True}


def test_every_flipped_bit_of_sealed_json_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_sealed_json(path, VALUE)
    assert read_sealed_json(path, VALUE) == VALUE
    content = path.read_bytes()
    for bit in range(0, 8 * len(content), 7):  # every byte and, in turn, every bit of it
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(CheckpointError, match=r"is damaged \(") as caught:
            read_sealed_json(path, VALUE)
        assert caught.value.file == path


def test_json_from_before_there_were_seals(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", VALUE)
    assert read_sealed_json(tmp_path / "x.json", VALUE) == VALUE
    write_json(tmp_path / "x.json", {**VALUE, "seam": "the name of the seal with a flipped bit"})
    with pytest.raises(CheckpointError, match="is not the one it was sealed with"):
        read_sealed_json(tmp_path / "x.json", VALUE)
    write_json(tmp_path / "x.json", {"inputs": "ab"})
    with pytest.raises(CheckpointError, match="a required entry is missing"):
        read_sealed_json(tmp_path / "x.json", VALUE)


@pytest.mark.parametrize("odd", ["NaN", '"\\ud800"', "[" * 900 + "]" * 900])
def test_a_seal_over_what_we_never_write(tmp_path: Path, odd: str) -> None:
    (tmp_path / "x.json").write_text(f'{{"inputs": {odd}, "seal": "{"0" * 64}"}}', encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"is damaged"):
        read_sealed_json(tmp_path / "x.json", ["inputs"])


def test_missing_directories_of_a_file_are_made(tmp_path: Path) -> None:
    write_text(tmp_path / "a" / "b" / "small", "x")
    with publish_file(tmp_path / "c" / "d" / "large") as temporary:
        temporary.write_bytes(b"y")
    assert (tmp_path / "a" / "b" / "small").read_text(encoding="utf-8") == "x"
    assert (tmp_path / "c" / "d" / "large").read_bytes() == b"y"
