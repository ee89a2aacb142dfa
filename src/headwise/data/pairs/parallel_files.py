"""Reads parallel text: pairs of sentences with their file and line.

A corpus is two line-aligned files or one TSV file; both are read as a stream. A pair that cannot be
read completely has a `problem`, and the filter counts it.

Tested against: the lists written to the files; one test for every kind of `problem`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from headwise.data.pairs.misalignment import MAX_LINES, find_slip
from headwise.data.text_lines import SUFFIXES, find_text_file, read_lines
from headwise.errors import DataError


class Pair(NamedTuple):
    """A source and a target sentence with file and line; `problem` says why a pair is unusable."""

    source: str
    target: str
    file: str
    line: int
    problem: str | None = None


@dataclass(frozen=True)
class Columns:
    """Which columns of a TSV file are read, and which rows are kept."""

    source: int
    target: int
    keep: Mapping[int, frozenset[str]]
    header: bool = False
    """The first line names the columns and is not a pair."""


def read_parallel(source: Path, target: Path) -> Iterator[Pair]:
    """Pairs of two line-aligned files.

    Different line counts are an error with both counts and the line to look at.
    """
    source_lines, target_lines = read_lines(source), read_lines(target)
    name, number = str(source), 0
    left: str | None = _END
    right: str | None = _END
    for left, right in zip_longest(source_lines, target_lines, fillvalue=_END):
        if left is _END or right is _END:
            break
        number += 1
        if left is None or right is None:
            yield Pair("", "", name if left is None else str(target), number, "long_line")
        else:
            yield Pair(left, right, name, number)
    if (left is _END) != (right is _END):
        counts = [number + (end is not _END) for end in (left, right)]
        counts[0] += sum(1 for _ in source_lines)
        counts[1] += sum(1 for _ in target_lines)
        raise _unequal(
            source, target, counts, find_slip(_line_lengths(source), _line_lengths(target))
        )
    if number == 0:
        raise empty_file(source)


_END = "\0end"
"""Marks the end of a file; compared by identity, so that no line equals it."""


def _line_lengths(path: Path) -> Iterator[int]:
    return (0 if line is None else len(line) for line in islice(read_lines(path), MAX_LINES))


def _unequal(source: Path, target: Path, counts: Sequence[int], line: int) -> DataError:
    return DataError(
        f"has {counts[0]:,} lines, {target.name} has {counts[1]:,}; both must have the same "
        f"number, line n translating line n; look at line {line:,} first, there the sides stop "
        "fitting",
        f"有 {counts[0]:,} 行，{target.name} 有 {counts[1]:,} 行；两者行数必须相同且逐行对应；"
        f"请先查看第 {line:,} 行，两侧从那里开始对不上",
        file=source,
        line=line,
    )


def empty_file(path: Path) -> DataError:
    return DataError(
        "is empty; a corpus needs at least one line: give another file",
        "是空文件；语料至少需要一行：请换一个文件",
        file=path,
    )


def read_tsv(path: Path, columns: Columns) -> Iterator[Pair]:
    """Pairs of one tab-separated file.

    Too few columns in the first line are an error; later lines are counted.
    """
    needed = max(columns.source, columns.target, *columns.keep, 0) + 1
    name, number, kept = str(path), 0, 0
    for number, line in enumerate(read_lines(path), start=1):
        if line is None:
            yield Pair("", "", name, number, "long_line")
            continue
        cells = line.split("\t")
        if len(cells) < needed:
            if number == 1:
                raise _too_few_columns(path, len(cells), needed)
            yield Pair(line, "", name, number, "missing_column")
            continue
        if number == 1 and columns.header:
            continue
        if all(cells[column] in values for column, values in columns.keep.items()):
            kept += 1
            yield Pair(cells[columns.source], cells[columns.target], name, number)
    if number == 0:
        raise empty_file(path)
    if columns.keep and not kept:
        wanted = "; ".join(
            f"column {column}: {', '.join(sorted(v))}" for column, v in columns.keep.items()
        )
        raise DataError(
            f"no line has the values asked for ({wanted}); correct `keep` of this corpus",
            f"没有一行含有要求的取值（{wanted}）；请修改该语料的 `keep`",
            file=path,
        )


def _too_few_columns(path: Path, given: int, needed: int) -> DataError:
    return DataError(
        f"the line has {given} column(s) separated by tabs, {needed} are needed; give a TSV file, "
        "or for two files the prefix before the language code; `columns: {en: 0, de: 1}` says "
        "which column is which",
        f"该行只有 {given} 个以制表符分隔的列，需要 {needed} 列；请给出 TSV 文件，"
        "或给出两个文件在语言代码之前的前缀；可用 `columns: {en: 0, de: 1}` 指定各列",
        file=path,
        line=1,
    )


def find_parallel(prefix: Path, source: str, target: str) -> tuple[Path, Path]:
    """prefix.en and prefix.de, each plain or compressed."""
    try:
        paths = [find_text_file(Path(f"{prefix}.{code}")) for code in (source, target)]
    except DataError as error:
        raise _explain_prefix(prefix, source, target) or error from error
    return paths[0], paths[1]


def _explain_prefix(prefix: Path, source: str, target: str) -> DataError | None:
    """What was given instead of a prefix, if it is one of the usual mistakes."""
    endings = [f".{code}{suffix}" for code in (source, target) for suffix in SUFFIXES]
    ending = next(
        (one for one in endings if prefix.name.endswith(one) and prefix.name != one), None
    )
    if ending is not None:
        right = prefix.with_name(prefix.name.removesuffix(ending))
        return DataError(
            f"is one of the two files of a corpus; give what both names begin with: {right} (read "
            f"are {right}.{source} and {right}.{target})",
            f"是语料两个文件之一；请给出两者共同的前缀：{right}（将读取 {right}.{source} 与 "
            f"{right}.{target}）",
            file=prefix,
        )
    if prefix.is_file():
        return DataError(
            f"is one file, but a corpus named like this is two: {prefix}.{source} and "
            f"{prefix}.{target}; give what both names begin with, or, if its lines are `source "
            f"TAB target`, say so: {{path: {prefix}, kind: tsv}}",
            f"是单个文件，而这样命名的语料是两个文件：{prefix}.{source} 与 {prefix}.{target}；"
            f"请给出两者共同的前缀；如果每行是“源文 制表符 译文”，请写明：{{path: {prefix}, kind: "
            "tsv}",
            file=prefix,
        )
    if prefix.is_dir():
        inside = prefix / "train"
        return DataError(
            "is a directory; give what the names of the two files in it begin with, e.g. "
            f"{inside} for {inside}.{source} and {inside}.{target}",
            f"是目录；请给出其中两个文件共同的前缀，例如 {inside} 对应 {inside}.{source} 与 "
            f"{inside}.{target}",
            file=prefix,
        )
    return None
