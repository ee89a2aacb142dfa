"""Tables at the width of a terminal: no word is broken, and a table without room becomes a list."""

import io
import re
import sys

import pytest

from headwise.cli.terminal.tables import column_widths, print_columns, print_table
from headwise.cli.terminal.wrapping import text_width

HEADINGS = ("result", "value", "details")
ROWS = [
    ("test set, BLEU", "99.58", "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"),
    ("测试集 chrF2", "99.84", "其中未知词两个"),
    ("number format", "fp32", ""),
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def show(columns: int, monkeypatch: pytest.MonkeyPatch) -> str:
    said = Terminal()
    monkeypatch.setattr(sys, "stdout", said)
    monkeypatch.setenv("COLUMNS", str(columns))
    print_table(HEADINGS, ROWS, title="a title")
    return re.sub(r"\x1b\[[0-9;]*m", "", said.getvalue())


@pytest.mark.parametrize("columns", [200, 80, 60, 50])
def test_a_table_fits_and_breaks_no_word(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    said = show(columns, monkeypatch)
    assert "│" in said
    assert max(map(text_width, said.splitlines())) <= columns
    for word in ("smooth:exp|", "version:2.6.0", "details", "BLEU", "99.58"):
        assert word in said


def test_a_table_without_room_becomes_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    said = show(32, monkeypatch)
    assert "│" not in said
    assert "test set, BLEU\n  value: 99.58\n  details: nrefs:1|" in said
    assert "number format\n  value: fp32\n测试集" not in said, "an empty cell has no line"
    assert max(map(text_width, said.splitlines())) <= 32


def test_numbers_stand_on_the_right_and_sentences_on_the_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = Terminal()
    monkeypatch.setattr(sys, "stdout", said)
    monkeypatch.setenv("COLUMNS", "80")
    print_table(
        ("a", "b", "c"),
        [
            ("x", "5 MiB", "22 predictions, 0 of them unknown"),
            ("y", "131,891 MiB (fits)", "7 labels"),
        ],
    )
    assert "│ x │              5 MiB │ 22 predictions, 0 of them unknown │" in said.getvalue()
    assert "│ y │ 131,891 MiB (fits) │ 7 labels                          │" in said.getvalue()


def test_headings_are_broken_before_cells() -> None:
    assert column_widths(("a long heading", "b"), [("x", "two words")], 23) == [7, 9]
    assert column_widths(("a", "b"), [("1", "2")], 80) == [1, 1]
    assert column_widths(("unbreakable", "b"), [], 14) is None


def test_names_and_what_is_said_of_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    print_columns([("基础", "a recipe for a GPU and many pairs"), ("pocket", "small")], indent="  ")
    assert capsys.readouterr().out == (
        "  基础    a recipe for a GPU and many\n          pairs\n  pocket  small\n"
    )
