"""Prose has lines of at most 100 columns, as code does; a Chinese character takes two.

Tables, pictures, lines with an address, and links alone on their line may be longer.
"""

import re
import unicodedata
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

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


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_lines_fit_the_width(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [
        f"{number}: {columns(line)} columns"
        for number, line in enumerate(lines, start=1)
        if columns(line) > LONGEST and not may_be_longer(line)
    ]
    assert found == []
