from pathlib import Path

import pytest

from headwise.data.pairs.parallel_files import Columns, find_parallel, read_parallel, read_tsv
from headwise.errors import DataError
from tests.data.made import write_lines


def columns(source: int = 0, target: int = 1, keep=None) -> Columns:
    return Columns(source, target, keep or {})


def test_pairs_carry_their_place(tmp_path: Path) -> None:
    left, right = (
        write_lines(tmp_path / "a.en", ["one", "two"]),
        write_lines(tmp_path / "a.de", ["eins", "zwei"]),
    )
    pairs = list(read_parallel(left, right))
    assert [(p.source, p.target, p.line) for p in pairs] == [("one", "eins", 1), ("two", "zwei", 2)]
    assert pairs[0].file == str(left)


def test_unequal_line_counts_give_both_and_a_place_to_look(tmp_path: Path) -> None:
    left = write_lines(tmp_path / "a.en", ["word"] * 11)
    right = write_lines(tmp_path / "a.de", ["Wort"] * 4 + [""] + ["Wort"] * 8)
    with pytest.raises(
        DataError, match=r"has 11 lines, a\.de has 13; .* look at line 5 first"
    ) as caught:
        list(read_parallel(left, right))
    assert caught.value.line == 5
    with pytest.raises(DataError, match=r"has 13 lines, a\.en has 11"):
        list(read_parallel(right, left))
    write_lines(right, ["Wort"] * 7)
    with pytest.raises(DataError, match=r"has 11 lines, a\.de has 7; .* look at line 8 first"):
        list(read_parallel(left, right))


def test_empty_files(tmp_path: Path) -> None:
    empty, other = write_lines(tmp_path / "a.en", []), write_lines(tmp_path / "a.de", [])
    with pytest.raises(DataError, match="is empty; a corpus needs at least one line"):
        list(read_parallel(empty, other))
    with pytest.raises(DataError, match="is empty"):
        list(read_tsv(empty, columns()))


def test_long_lines_keep_the_sides_in_step(tmp_path: Path) -> None:
    left = write_lines(tmp_path / "a.en", ["one", "x" * 100_000, "three"])
    right = write_lines(tmp_path / "a.de", ["eins", "zwei", "drei"])
    pairs = list(read_parallel(left, right))
    assert [(p.source, p.problem) for p in pairs] == [
        ("one", None),
        ("", "long_line"),
        ("three", None),
    ]


def test_tsv_columns_and_rows(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "a.tsv",
        ["eng\tHans\thello\t你好", "eng\tHant\thello\t妳好", "eng", "eng\tHans\tcat\t猫\tmore"],
    )
    chosen = columns(3, 2, {1: frozenset({"Hans"})})
    pairs = list(read_tsv(path, chosen))
    assert [(p.source, p.target, p.line, p.problem) for p in pairs] == [
        ("你好", "hello", 1, None),
        ("eng", "", 3, "missing_column"),
        ("猫", "cat", 4, None),
    ]
    with pytest.raises(DataError, match="no line has the values asked for"):
        list(read_tsv(path, columns(3, 2, {1: frozenset({"Latn"})})))


def test_one_column_is_no_tsv(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.tsv", ["hello", "world"])
    with pytest.raises(
        DataError, match=r"has 1 column\(s\) separated by tabs, 2 are needed"
    ) as caught:
        list(read_tsv(path, columns()))
    assert caught.value.line == 1


def test_files_are_found_packed_or_plain(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.b.en", ["x"])
    write_lines(tmp_path / "a.b.de.gz", ["x"])
    assert [path.name for path in find_parallel(tmp_path / "a.b", "en", "de")] == [
        "a.b.en",
        "a.b.de.gz",
    ]
