import gzip
import io
import lzma
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headwise.errors import DataError
from headwise.tasks.text_input import AHEAD, read_sentences, read_text_lines

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


@contextmanager
def piped(content: bytes, path: Path) -> Iterator[Path]:
    """A named pipe into which the content is written."""
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(content), daemon=True)
    writer.start()
    yield path
    writer.join(10)


BAD = b"one\ntwo\n\xff\n"
FOUND = r":3: byte 8 \(0xff\) is not UTF-8"


def test_a_bad_line_in_a_pipe_is_found_before_the_first_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with piped(BAD, tmp_path / "named") as path, pytest.raises(DataError, match=FOUND):
        next(read_sentences(path))
    source = Standard(b"")
    with piped(BAD, tmp_path / "pipe") as path, path.open("rb") as stream:
        source.buffer = stream  # type: ignore[assignment]
        monkeypatch.setattr(sys, "stdin", source)
        with pytest.raises(DataError, match=FOUND):
            next(read_sentences(None))


def test_a_file_on_standard_input_is_looked_at_to_its_end_and_a_pipe_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"one\n" * AHEAD + b"\xff\n"
    monkeypatch.setattr(sys, "stdin", Standard(content))
    with pytest.raises(DataError, match=f":{AHEAD + 1}: .* is not UTF-8"):
        next(read_sentences(None))
    with piped(content, tmp_path / "pipe") as path:
        lines = read_sentences(path)
        assert [next(lines) for _ in range(AHEAD)] == ["one"] * AHEAD
        with pytest.raises(DataError, match=f":{AHEAD + 1}: .* is not UTF-8"):
            next(lines)


def test_what_is_typed_is_given_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.BytesIO):
        def isatty(self) -> bool:
            return True

    source = Standard(b"")
    source.buffer = Terminal(b"one\n\xff\n")
    monkeypatch.setattr(sys, "stdin", source)
    assert next(read_sentences(None)) == "one"


def test_standard_input_that_was_begun_goes_on_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `{ read -r heading; headwise score …; } < file`."""
    source = Standard(b"heading\none\ntwo\n")
    source.buffer.readline()
    monkeypatch.setattr(sys, "stdin", source)
    assert list(read_sentences(None)) == ["one", "two"]


def test_a_pipe_is_read_once_only(tmp_path: Path) -> None:
    with piped(b"one\ntwo\n", tmp_path / "pipe") as path:
        with pytest.raises(
            DataError, match="is a pipe or device, a file that can be read again is needed"
        ):
            list(read_text_lines(path))
        assert list(read_sentences(path)) == ["one", "two"]
