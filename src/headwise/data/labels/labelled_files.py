"""Reads labelled text: one label a text (N → 1) or one tag a word (N → N).

    tsv        a film worth seeing<TAB>1         columns by number
    csv        label,review                      a header, quotes where needed
    leading    DESC:manner How does it work ?    the first word is the label
    conllu     1  From  from  ADP  …             Universal Dependencies, without ranges (1-2)
                                                 and empty nodes (8.1)
    columns    From<TAB>ADP                      a word a line, an empty line between sentences
    slashed    来到/v 北京/ns                    word/TAG, without brackets of compounds ([…]nt)
    aligned    a file of words, a file of tags   line by line, as many tags as words

Nothing is repaired: a line that does not match is an error with file and line, because a tag that
shifts by one word spoils every word after it. Tested against: the lists written to the files, and
one file for each defect.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from headwise.data.pairs.parallel_files import empty_file
from headwise.data.text_lines import MAX_LINE_BYTES, read_lines
from headwise.errors import DataError

CONLLU_COLUMNS = 10


class Labelled(NamedTuple):
    """A text with its label, or words with their tags; with file and line."""

    words: tuple[str, ...]
    labels: tuple[str, ...]
    file: Path
    line: int


def _wrong(en: str, zh: str, file: Path, line: int) -> DataError:
    return DataError(en, zh, file=file, line=line)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Every line with its number; a line that is too long, or an empty file, is an error."""
    number = 0
    for number, line in enumerate(read_lines(path), start=1):
        if line is None:
            raise _wrong(
                f"is longer than {MAX_LINE_BYTES:,} bytes; put one text on a line",
                f"超过 {MAX_LINE_BYTES:,} 字节；请每行只放一条",
                path,
                number,
            )
        yield number, line
    if number == 0:
        raise empty_file(path)


def _one(text: str, label: str, path: Path, number: int) -> Labelled:
    text, label = text.strip(), label.strip()
    if not text or not label:
        what, zh = ("text", "文本") if not text else ("label", "标签")
        raise _wrong(
            f"the {what} is empty; every line needs a text and a label",
            f"{zh}为空；每行都要有文本与标签",
            path,
            number,
        )
    return Labelled((text,), (label,), path, number)


def _cell(cells: Sequence[str], column: int, path: Path, number: int) -> str:
    if len(cells) <= column:
        raise _wrong(
            f"the line has {len(cells)} column(s), column {column} (from 0) is asked for; correct "
            "the line, or text_column and label_column",
            f"该行有 {len(cells)} 列，而要求的是第 {column} 列（从 0 数起）；请改正该行，或 "
            "text_column 与 label_column",
            path,
            number,
        )
    return cells[column]


def read_table(
    path: Path, *, text_column: int, label_column: int, header: bool = False
) -> Iterator[Labelled]:
    """Tab-separated text and label; empty lines are skipped."""
    for number, line in numbered_lines(path):
        if line.strip() and not (header and number == 1):
            cells = line.split("\t")
            yield _one(
                _cell(cells, text_column, path, number),
                _cell(cells, label_column, path, number),
                path,
                number,
            )


def read_comma_table(
    path: Path, *, text_column: int, label_column: int, header: bool, skip_empty: bool = False
) -> Iterator[Labelled]:
    """Comma-separated values; a quoted text may span several lines.

    `skip_empty`: skip rows without text, which a published corpus has.
    """
    reader = csv.reader((line + "\n" for _, line in numbered_lines(path)), strict=True)
    start = 1
    try:
        for row, cells in enumerate(reader):
            number, start = start, reader.line_num + 1
            if cells and not (header and row == 0):
                text = _cell(cells, text_column, path, number)
                if text.strip() or not skip_empty:
                    yield _one(text, _cell(cells, label_column, path, number), path, number)
    except csv.Error as error:
        raise _wrong(
            f"is not comma-separated text ({error}); correct the quotes",
            f"不是逗号分隔文本（{error}）；请改正引号",
            path,
            start,
        ) from error


def read_leading(path: Path, *, coarse: bool) -> Iterator[Labelled]:
    """The first word of a line is its label; `coarse` keeps the part before its colon."""
    for number, line in numbered_lines(path):
        if line.strip():
            label, _, text = line.strip().partition(" ")
            yield _one(text, label.partition(":")[0] if coarse else label, path, number)


def read_conllu(path: Path, *, tags: str) -> Iterator[Labelled]:
    """Words (FORM) and tags (UPOS or XPOS) of Universal Dependencies."""
    column = {"upos": 3, "xpos": 4}[tags]

    def cells() -> Iterator[tuple[int, str, str] | None]:
        for number, line in numbered_lines(path):
            if not line.strip():
                yield None
            elif not line.startswith("#"):
                found = line.split("\t")
                if len(found) != CONLLU_COLUMNS:
                    raise _wrong(
                        f"has {len(found)} columns, CoNLL-U has {CONLLU_COLUMNS} separated by "
                        "tabs; correct the line",
                        f"有 {len(found)} 列，而 CoNLL-U 为以制表符分隔的 {CONLLU_COLUMNS} 列；"
                        "请改正该行",
                        path,
                        number,
                    )
                if found[0].isdigit() and found[column] == "_":
                    raise _wrong(
                        f"{found[1]!r} has no {tags} tag ({column + 1}th column: _); correct the "
                        "line, or set `tags` to the other kind",
                        f"{found[1]!r} 没有 {tags} 标注（第 {column + 1} 列为 _）；请改正该行，"
                        "或把 `tags` 设为另一种",
                        path,
                        number,
                    )
                if found[0].isdigit():
                    yield number, found[1], found[column]

    return _sentences(cells(), path)


def read_columns(path: Path) -> Iterator[Labelled]:
    """A word and its tag a line."""

    def cells() -> Iterator[tuple[int, str, str] | None]:
        for number, line in numbered_lines(path):
            if not line.strip():
                yield None
                continue
            found = line.split("\t")
            if len(found) != 2:
                raise _wrong(
                    f"has {len(found)} column(s), a word, a tab and its tag are needed; an empty "
                    "line ends a sentence",
                    f"有 {len(found)} 列，应为词、制表符、标注；空行结束一句",
                    path,
                    number,
                )
            yield number, found[0], found[1]

    return _sentences(cells(), path)


def _sentences(cells: Iterator[tuple[int, str, str] | None], path: Path) -> Iterator[Labelled]:
    """Groups of lines between empty lines."""
    words: list[str] = []
    labels: list[str] = []
    first = 0
    for cell in cells:
        if cell is not None:
            first = first if words else cell[0]
            words.append(_filled(cell[1], path, cell[0]))
            labels.append(_filled(cell[2], path, cell[0]))
        elif words:
            yield Labelled(tuple(words), tuple(labels), path, first)
            words, labels = [], []
    if words:
        yield Labelled(tuple(words), tuple(labels), path, first)


def _filled(text: str, path: Path, number: int) -> str:
    if not text.strip():
        raise _wrong(
            "a word or its tag is empty; correct the line", "词或标注为空；请改正该行", path, number
        )
    return text.strip()


def read_slashed(path: Path) -> Iterator[Labelled]:
    """word/TAG word/TAG …"""
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        words, labels = [], []
        for token in line.split():
            word, _, tag = re.sub(r"(?<=\w)\]\w*$", "", token).removeprefix("[").rpartition("/")
            if not word or not tag:
                raise _wrong(
                    f"{token!r:.60} has no tag; every word is written word/TAG",
                    f"{token!r:.60} 没有标注；每个词应写作 词/标注",
                    path,
                    number,
                )
            words.append(word)
            labels.append(tag)
        yield Labelled(tuple(words), tuple(labels), path, number)


def read_aligned(path: Path, tags: Path) -> Iterator[Labelled]:
    """Words of one file, tags of the other, line by line."""
    for one, other in zip_longest(numbered_lines(path), numbered_lines(tags)):
        if one is None or other is None:
            number = (one or other or (0, ""))[0]
            short, long = (path, tags) if one is None else (tags, path)
            raise _wrong(
                f"has no line for this line of {long.name}; both files need as many lines",
                f"没有与 {long.name} 该行对应的行；两个文件的行数须相同",
                short,
                number,
            )
        words, labels = one[1].split(), other[1].split()
        if len(words) != len(labels):
            raise _wrong(
                f"has {len(labels)} tags for the {len(words)} words of {path.name}; every word "
                "needs one tag",
                f"有 {len(labels)} 个标注，而 {path.name} 该行有 {len(words)} 个词；"
                "每个词须有一个标注",
                tags,
                other[0],
            )
        if words:
            yield Labelled(tuple(words), tuple(labels), path, one[0])
