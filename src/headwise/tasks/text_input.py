"""Reads lines of text from a file or standard input, for the commands that translate and measure.

Training may skip a bad line; here a line that cannot be read is an error with its line number. The
error should come before any output is printed. So lines are checked ahead, as far as possible:

    a file on standard input     the whole file is read once before its first line is returned
    a pipe                       blocks of `AHEAD` lines are read before their first is returned
    a terminal                   each line is returned as it is typed
"""

import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

from headwise.data.text_lines import MAX_LINE_BYTES, decode_line, find_text_file, read_lines
from headwise.errors import DataError

STANDARD_INPUT = Path("standard input")
AHEAD = 4096

Lines = TypeVar("Lines", str, str | None)


def read_text_lines(path: Path | None, *, once: bool = False) -> Iterator[str]:
    """All lines without their ends; None reads standard input. `once`: the path may be a pipe."""
    place = STANDARD_INPUT if path is None else find_text_file(path)
    return _read_ahead(lambda: _whole(_read(path, once=once), place), path)


def _whole(lines: Iterator[str | None], place: Path) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if line is None:
            raise line_too_long(place, number)
        yield line


def read_sentences(path: Path | str | None, *, keep_blank: bool = False) -> Iterator[str]:
    """The lines that are not blank, without the space around them (`keep_blank`: all lines). A text
    without any line to return is an error.
    """
    num_found = 0
    for line in read_text_lines(None if path is None else Path(path), once=True):
        if keep_blank or line.strip():
            num_found += 1
            yield line.strip()
    if not num_found:
        raise _no_sentence(path)


def read_every_sentence(path: Path | str | None) -> Iterator[str]:
    """Every line, blank ones too, so that answer n belongs to line n. A text of blank lines alone
    is an error.
    """
    waiting, has_words = 0, False
    for line in read_text_lines(None if path is None else Path(path), once=True):
        if not has_words and not line.strip():
            waiting += 1
            continue
        yield from [""] * waiting
        waiting, has_words = 0, True
        yield line.strip()
    if not has_words:
        raise _no_sentence(path)


def _no_sentence(path: Path | str | None) -> DataError:
    return DataError(
        "holds no sentence; at least one line with words is needed: give another text",
        "没有任何句子；至少需要一行有文字：请换一份文本",
        file=STANDARD_INPUT if path is None else path,
    )


def read_lines_or_none(path: Path | None, *, once: bool = False) -> Iterator[str | None]:
    """All lines without their ends; None for a line longer than `MAX_LINE_BYTES`. Without a path,
    standard input is read.
    """
    return _read_ahead(lambda: _read(path, once=once), path)


def _read_ahead(read: Callable[[], Iterator[Lines]], path: Path | None) -> Iterator[Lines]:
    """The lines of `read`, checked ahead as far as the input allows (see the header)."""
    if path is not None:
        return _in_blocks(read()) if path.is_fifo() else read()
    stream = sys.stdin.buffer
    if stream.isatty():
        return read()
    return _after_a_look(read) if stream.seekable() else _in_blocks(read())


def _after_a_look(read: Callable[[], Iterator[Lines]]) -> Iterator[Lines]:
    begin = sys.stdin.buffer.tell()
    for _ in read():
        pass
    sys.stdin.buffer.seek(begin)
    yield from read()


def _in_blocks(lines: Iterator[Lines]) -> Iterator[Lines]:
    while block := list(islice(lines, AHEAD)):
        yield from block


def _read(path: Path | None, *, once: bool) -> Iterator[str | None]:
    return _standard_input() if path is None else read_lines(find_text_file(path), once=once)


def _standard_input() -> Iterator[str | None]:
    number, offset = 0, 0
    while raw := sys.stdin.buffer.readline(MAX_LINE_BYTES + 2):
        number += 1
        offset += len(raw)
        if len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n"):
            while (rest := sys.stdin.buffer.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                offset += len(rest)
            offset += len(rest)
            yield None
        else:
            yield decode_line(raw, STANDARD_INPUT, number, offset - len(raw))


def line_too_long(path: Path | str, line: int) -> DataError:
    return DataError(
        f"is longer than {MAX_LINE_BYTES:,} bytes; put one sentence on a line",
        f"超过 {MAX_LINE_BYTES:,} 字节；请每行只放一句",
        file=path,
        line=line,
    )
