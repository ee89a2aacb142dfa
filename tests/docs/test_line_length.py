"""Prose has lines of at most 100 columns, as code does; a Chinese character takes two.

Tables, pictures, lines with an address, and links alone on their line may be longer. The scripts,
style sheets and HTML of the page and the Python files of the package are held to the same width.
Ruff checks Python too (E501), but lets a line without a space pass. The tables of data/known are
exempt, because they hold addresses and checksums.

Tables of text are exempt, because a row is one entry that is read and compared as a whole: the
texts of the page in two languages (explorer/static/*/en.json and zh.json), since JSON cannot break
a string, the words and wordings of the pocket corpus in three languages (pocket/*/*.txt), and the
list of Chinese characters (text/han_words.txt).

A line of Chinese does not end between two characters: most renderers show a line break as a space.
It ends after punctuation, or beside a Latin word, where a space stands anyway.
"""

import itertools
import re
import unicodedata
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, read_page

LONGEST = 100


def columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in line)


def may_be_longer(line: str) -> bool:
    text = line.strip()
    is_one_link = re.fullmatch(r"(?:\d+\. |- )?\[[^\]]+\]\([^)]+\)", text)
    return text.startswith(("|", "![")) or "http" in text or is_one_link is not None


def documents() -> list[Path]:
    return sorted(
        [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "recipes").glob("*.yaml")]
    )


def page_files() -> list[Path]:
    files = (ROOT / "src" / "headwise" / "explorer" / "static").rglob("*")
    return sorted(path for path in files if path.suffix in (".js", ".css", ".html"))


def python_files() -> list[Path]:
    source = ROOT / "src" / "headwise"
    return sorted(path for path in source.rglob("*.py") if path.parent != source / "data/known")


def wide_lines(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        f"{number}: {columns(line)} columns"
        for number, line in enumerate(lines, start=1)
        if columns(line) > LONGEST and not may_be_longer(line)
    ]


def test_the_page_has_files() -> None:
    assert len(page_files()) > 40


def test_lines_of_python_fit_the_width() -> None:
    wide = {path.relative_to(ROOT).as_posix(): wide_lines(path) for path in python_files()}
    assert len(wide) > 500
    assert {path: lines for path, lines in wide.items() if lines} == {}


@pytest.mark.parametrize(
    "path", [*documents(), *page_files()], ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_lines_fit_the_width(path: Path) -> None:
    assert wide_lines(path) == []


def breaks_inside_chinese(path: Path) -> list[str]:
    """Places where a line ends with a Chinese character and the next begins with one."""
    prose = read_page(path).prose
    return [
        f"{number}: …{line[-8:]} / {following[:8]}…"
        for (number, line), (next_number, following) in itertools.pairwise(prose)
        if next_number == number + 1
        and re.search(r"[\u4e00-\u9fff]$", line)
        and re.match(r"\s*[\u4e00-\u9fff]", following)
        and not line.startswith(("#", "|"))
    ]


@pytest.mark.parametrize(
    "path",
    [path for path in documents() if path.suffix == ".md"],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_lines_of_chinese_end_at_punctuation(path: Path) -> None:
    assert breaks_inside_chinese(path) == []


def test_a_break_inside_chinese_would_be_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("句子在这里\n断开。\n\n句子在逗号处，\n断开。\n", "utf-8")
    assert len(breaks_inside_chinese(page)) == 1
