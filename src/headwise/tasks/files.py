"""Lines of text from a file or standard input, for translating and measuring.

Unlike training text, nothing may be left out here: a line that cannot be read is an error with its place.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from headwise.data.lines import find_text_file, read_lines
from headwise.errors import DataError

MAX_LINE_CHARACTERS = 65_536


def read_text_lines(path: Path | None) -> Iterator[str]:
    """All lines without their ends; None reads standard input."""
    if path is None:
        return _standard_input()
    return _file(find_text_file(path))


def _file(path: Path) -> Iterator[str]:
    for number, line in enumerate(read_lines(path), start=1):
        if line is None:
            raise _too_long(str(path), number)
        yield line


def _standard_input() -> Iterator[str]:
    stream = sys.stdin.buffer
    number = 0
    while raw := stream.readline(4 * MAX_LINE_CHARACTERS):
        number += 1
        if not raw.endswith(b"\n") and len(raw) >= 4 * MAX_LINE_CHARACTERS:
            raise _too_long("standard input", number)
        try:
            yield raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(
                "is not UTF-8 text; convert it, e.g. with iconv -f GB18030 -t UTF-8",
                "不是 UTF-8 文本；请转换，例如 iconv -f GB18030 -t UTF-8",
                file="standard input",
                line=number,
            ) from error


def _too_long(name: str, line: int) -> DataError:
    return DataError(
        f"is longer than {MAX_LINE_CHARACTERS:,} characters; put one sentence on a line",
        f"超过 {MAX_LINE_CHARACTERS:,} 个字符；请每行只放一句",
        file=name,
        line=line,
    )
