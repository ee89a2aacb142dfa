import gzip
import io
import lzma
import sys
from pathlib import Path

import pytest

from headwise.errors import DataError
from headwise.tasks.text_input import read_text_lines

CONTENT = b"\xef\xbb\xbfone\r\n\r\n\xe7\x8c\xab two\n  \nlast"
LINES = ["one", "", "猫 two", "  ", "last"]


class Standard:
    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


def read(content: bytes, place: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    if place == "standard input":
        monkeypatch.setattr(sys, "stdin", Standard(content))
        return list(read_text_lines(None))
    packers = {"gz": gzip.compress, "xz": lzma.compress}
    packer = packers.get(place)
    file = path / ("in.txt" if packer is None else f"in.txt.{place}")
    file.write_bytes(content if packer is None else packer(content))
    return list(read_text_lines(file))


@pytest.mark.parametrize("place", ["file", "gz", "xz", "standard input"])
def test_all_lines_come_as_they_are(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read(CONTENT, place, tmp_path, monkeypatch) == LINES
    assert read(b"", place, tmp_path, monkeypatch) == []


@pytest.mark.parametrize("place", ["file", "standard input"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"ok\n" + b"x" * 1_000_000, ":2: is longer than 65,536 bytes; put one sentence on a line"),
        (
            "ok\n你好世界，很高兴".encode("gb18030"),
            ":2: byte 3 .*looks like GB18030; convert it, e.g. iconv -f GB18030",
        ),
        ("schläft\n".encode("latin-1"), ":1: byte 4 .*looks like ISO-8859-1"),
        ("ok".encode("utf-16"), ":1: byte 0 .*looks like UTF-16"),
    ],
)
def test_a_line_that_cannot_be_read_is_an_error_with_its_place(
    content: bytes, message: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match=message):
        read(content, place, tmp_path, monkeypatch)


def test_a_packed_file_is_found_without_its_ending(tmp_path: Path) -> None:
    (tmp_path / "in.txt.gz").write_bytes(gzip.compress(CONTENT))
    assert list(read_text_lines(tmp_path / "in.txt")) == LINES
    with pytest.raises(DataError, match=r"there is no out.txt, out.txt.gz or out.txt.xz"):
        read_text_lines(tmp_path / "out.txt")
