import gzip
import lzma
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.data.text_lines import MAX_LINE_BYTES, find_text_file, read_lines
from headwise.errors import DataError

OPENERS = {"": open, ".gz": gzip.open, ".xz": lzma.open}
TEXT = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\n\r\ufeff"), max_size=20
)


def write(path: Path, content: bytes) -> Path:
    with OPENERS[path.suffix if path.suffix in OPENERS else ""](path, "wb") as file:
        file.write(content)
    return path


@given(
    lines=st.lists(TEXT),
    suffix=st.sampled_from(["", ".gz", ".xz"]),
    end=st.sampled_from(["\n", "\r\n"]),
)
@settings(max_examples=60, deadline=None)
def test_lines_come_back(
    lines: list[str], suffix: str, end: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("lines") / f"text{suffix}"
    assert list(read_lines(write(path, "".join(line + end for line in lines).encode()))) == lines


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    content = "\ufeffa\u2028b\x0bc\x85d\r\ne\rf\nlast"
    assert list(read_lines(write(tmp_path / "t", content.encode()))) == [
        "a\u2028b\x0bc\x85d",
        "e\rf",
        "last",
    ]
    assert list(read_lines(write(tmp_path / "t", b"\n" * 1009))) == [""] * 1009


def test_an_endless_line_is_counted_without_being_held(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t",
        b"a\n" + b"x" * (20 << 20) + b"\nb\n" + b"y" * MAX_LINE_BYTES + b"\n" + b"z" * (1 << 20),
    )
    tracemalloc.start()
    lines = list(read_lines(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [line if line is None else len(line) for line in lines] == [
        1,
        None,
        1,
        MAX_LINE_BYTES,
        None,
    ]
    assert peak < 6 << 20


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (
            "ok\ncafé au lait\n".encode("latin-1"),
            2,
            r"byte 6 \(0xe9\) is not UTF-8; the file looks like ISO-8859-1",
        ),
        ("我们在这里\n".encode("gb18030"), 1, "looks like GB18030"),
        (
            "hello\n".encode("utf-16"),
            1,
            "looks like UTF-16; convert it, e.g. iconv -f UTF-16 -t UTF-8",
        ),
        (
            b"I want ____\nyou are ____\n\xff\xfe ____\n",
            3,
            r"byte 25 \(0xff\) is not UTF-8; no usual encoding has such text: the line is damaged",
        ),
        (b"a\nno \xfe\xff here\n", 2, "the line is damaged; correct or remove it"),
        (b"a\n\xed\xa0\x80\n", 2, "byte 2"),
        (b"long\n" * 3 + b"cut \xe4\xbd", 4, "byte 19"),
    ],
)
def test_other_encodings_are_named(content: bytes, line: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message) as caught:
        list(read_lines(write(tmp_path / "t", content)))
    assert (caught.value.file, caught.value.line) == (tmp_path / "t", line)


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_damaged_archives(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"t{suffix}", b"".join(b"line %d\n" % n for n in range(5000)))
    whole = path.read_bytes()
    for damaged in (
        whole[: len(whole) // 2],
        whole[:20] + b"\xff\x00\xff" + whole[23:],
        b"no archive",
    ):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="damaged or cut short"):
            list(read_lines(path))


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist; check the path"):
        list(read_lines(tmp_path / "none"))
    with pytest.raises(DataError, match="is a directory, a text file is needed"):
        list(read_lines(tmp_path))
    with pytest.raises(DataError, match=r"there is no a\.en, a\.en\.gz or a\.en\.xz in"):
        find_text_file(tmp_path / "a.en")
    for directory in ("/", ".", "..", str(tmp_path)):
        with pytest.raises(DataError, match="is a directory, a text file is needed"):
            find_text_file(Path(directory))
    with pytest.raises(DataError, match="there is no"):
        find_text_file(Path("a\0b"))


def test_no_permission_as_the_system_reports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = write(tmp_path / "t", b"a\n")
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match=r"cannot be read \(Permission denied\)"):
        list(read_lines(path))


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="is a pipe or device"):
        list(read_lines(tmp_path / "pipe"))
