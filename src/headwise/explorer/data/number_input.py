"""Reads small tables of numbers that a user types (`51,56,58`, rows separated by `;`) or a CSV
file.

    51,56,58            a list: three keys of one number each, or one row beside wider keys
                        (`arrange`)
    51,70;56,82;58,88   three rows of two numbers; a single row ends with `;`
    keys.csv            one row a line; numbers are separated by comma, semicolon or tab and may
                        stand in quotes; a first line of names is a heading

`headwise attend` uses it. Sizes are checked before anything is computed.

Tested against: the numbers that were written; one message for each mistake, with file and line.
"""

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headwise.errors import DataError, HeadwiseError, UsageError

MAX_FILE_BYTES = 1 << 20
MAX_ROWS, MAX_COLUMNS = 1024, 512
LARGEST = 1e12
"""The largest absolute value: products of larger numbers lose too many digits."""

MISSING = ("na", "n/a", "null", "none", "nil")
"""Cells that stand for a missing number."""

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class NumberTable:
    rows: Rows
    is_list: bool = False
    """Written without `;`: a row or a column, depending on the tables beside it (`arrange`)."""
    heading: str = ""
    """The first line of a file if it holds names; it is not a row."""

    def as_column(self) -> Rows:
        return tuple((number,) for number in self.rows[0]) if self.is_list else self.rows


def read_numbers(text: str, *, name: str) -> NumberTable:
    """The numbers of an option; `name` is the option's name in messages."""
    if not re.fullmatch(r"[\s\d.,;+\-eE]*", text) and _looks_like_a_path(text):
        return _read_file(Path(text))
    pieces = text.split(";")
    if len(pieces) > 1 and pieces[-1].strip() == "":
        pieces = pieces[:-1]  # a lone row is marked by the `;` behind it
    rows = tuple(_read_row(piece.split(","), UsageError, f"{name}: ") for piece in pieces)
    _check_shape([(row, None) for row in rows], UsageError, f"{name}: ", None)
    return NumberTable(rows, is_list=";" not in text)


def _looks_like_a_path(text: str) -> bool:
    return re.search(r"\.(csv|tsv|txt)$|[/\\]", text, flags=re.IGNORECASE) is not None or (
        len(text) < 256 and Path(text).is_file()
    )


def _read_file(path: Path) -> NumberTable:
    with path.open("rb") as file:
        # The size is limited here because a device or a pipe has no size and may never end.
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise DataError(
            f"the file is too large: at most {MAX_FILE_BYTES:,} bytes are read; give a part of it",
            f"文件过大：逐步演算的表最多 {MAX_FILE_BYTES:,} 字节；请取其中一部分",
            file=path,
        )
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(
            "not UTF-8 text, but a CSV file is needed; save it as CSV in UTF-8",
            "不是 UTF-8 文本，需要 CSV 文件；请另存为 UTF-8 编码的 CSV",
            file=path,
        ) from error
    rows: list[tuple[tuple[float, ...], int]] = []
    heading = ""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        cells = _cut(line, path, number)
        if not rows and not heading and all(_is_name(cell) for cell in cells):
            heading = line.strip()
        else:
            rows.append((_read_row(cells, DataError, "", path, number), number))
    _check_shape(rows, DataError, "", path)
    return NumberTable(tuple(row for row, _ in rows), heading=heading)


def _cut(line: str, path: Path, number: int) -> list[str]:
    """The cells of a line. The separator is the one that occurs outside quotes."""
    bare = re.sub(r'"[^"]*"', "", line)
    found = [mark for mark in "\t;," if mark in bare]
    if len(found) > 1:
        raise DataError(
            f"{line.strip()[:40]!r} has several marks between its numbers "
            f"({', '.join(map(repr, found))}); use one of them, a point for decimals, and a line "
            "for each row",
            f"{line.strip()[:40]!r} 中的数之间有多种分隔符（{'、'.join(map(repr, found))}）；"
            "请只用一种，小数用点，每行一条",
            file=path,
            line=number,
        )
    try:
        cells = next(
            csv.reader([line], delimiter=found[0] if found else ",", skipinitialspace=True)
        )
    except csv.Error as error:
        raise DataError(
            f"{line.strip()[:40]!r}… cannot be read as CSV ({error}); write one number a cell, "
            "separated by commas",
            f"{line.strip()[:40]!r}… 无法按 CSV 读取（{error}）；请每格写一个数，以逗号分隔",
            file=path,
            line=number,
        ) from error
    return [cell.strip() for cell in cells]


def _is_name(cell: str) -> bool:
    """Whether a cell may stand in a heading: it begins with a letter. `5l` and `-x` are mistyped
    numbers; `nan`, `inf` and `NA` are numbers that are refused.
    """
    return (
        not _is_number(cell)
        and cell.lower() not in MISSING
        and re.match(r"[^\W\d]", cell) is not None
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_row(
    cells: list[str],
    kind: type[HeadwiseError],
    name: str,
    file: Path | None = None,
    line: int | None = None,
) -> tuple[float, ...]:
    row = []
    for cell in cells:
        shown = cell.strip()[:40]
        value = float(cell) if _is_number(cell) else math.nan
        if not abs(value) <= LARGEST:
            raise kind(
                f"{name}{shown!r} is not a number up to {LARGEST:g}; write numbers such as "
                "51,56,58, rows such as 51,70;56,82, or the path of a CSV file of them",
                f"{name}{shown!r} 不是绝对值不超过 {LARGEST:g} 的数；请写成 51,56,58 这样的数、"
                "51,70;56,82 这样的行，或给出 CSV 文件的路径",
                file=file,
                line=line,
            )
        row.append(value)
    return tuple(row)


def _check_shape(
    rows: Sequence[tuple[tuple[float, ...], int | None]],
    kind: type[HeadwiseError],
    name: str,
    file: Path | None,
) -> None:
    if not rows:
        raise kind(
            f"{name}no numbers; at least one is needed", f"{name}没有数；至少需要一个", file=file
        )
    width = len(rows[0][0])
    for row, line in rows:
        if len(row) != width:
            raise kind(
                f"{name}a row of {len(row)} numbers after rows of {width}; all rows need the same "
                "length",
                f"{name}前面的行有 {width} 个数，这一行有 {len(row)} 个；各行长度须相同",
                file=file,
                line=line,
            )
    # A list may become a column, so both limits hold for it.
    if len(rows) > MAX_ROWS or width > (MAX_ROWS if len(rows) == 1 else MAX_COLUMNS):
        raise kind(
            f"{name}{len(rows):,} × {width:,} numbers, but at most {MAX_ROWS:,} rows of "
            f"{MAX_COLUMNS} can be looked at; take a part",
            f"{name}共 {len(rows):,} × {width:,} 个数，而最多只能看 {MAX_ROWS:,} 行、每行 "
            f"{MAX_COLUMNS} 个；请取一部分",
            file=file,
        )


def arrange(
    keys: NumberTable, values: NumberTable, queries: NumberTable
) -> tuple[Rows, Rows, Rows]:
    """The rows of keys, values and queries. A list becomes a column, except that a list of queries
    beside wide keys is one query, and a list of values beside one key is one row.
    """
    key_rows = keys.as_column()
    one_query = queries.is_list and len(key_rows[0]) > 1
    query_rows = queries.rows if one_query else queries.as_column()
    one_value = values.is_list and len(key_rows) == 1
    value_rows = values.rows if one_value else values.as_column()
    if len(value_rows) != len(key_rows):
        raise UsageError(
            f"{len(key_rows)} keys and {len(value_rows)} values were given, but every key needs "
            "one value; rows are separated by `;`, and a lone row ends with it",
            f"给出了 {len(key_rows)} 个键和 {len(value_rows)} 个值，而每个键需要一个值；行以 `;` "
            "分隔，单独一行以它结尾",
        )
    return key_rows, value_rows, query_rows
