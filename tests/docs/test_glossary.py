"""One term for each thing: the words that the glossary rejects occur neither in the documentation
nor in the source.

`docs/glossary.md` lists them in the last column of its tables, in code quotes. Words are matched
whole (`filling`, not `fulfilling`) and in any case; Chinese words wherever they stand.
"""

import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, read_page

GLOSSARY = ROOT / "docs" / "glossary.md"
SOURCE = ROOT / "src" / "headwise"

ORDINARY = (
    "gap_filling",
    "Filling in a gap",
    "Questions, wishes",
    '"ask-wish"',
    '"rungs": [',  # a key of lineage.json, which older files have
)
"""Phrases in which a rejected word has its ordinary meaning."""


@cache
def rejected_words() -> dict[str, str]:
    """Each rejected word with the term that replaces it."""
    words: dict[str, str] = {}
    for _, line in read_page(GLOSSARY).prose:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 5:
            term = f"{cells[0]} · {cells[1]}"
            words |= dict.fromkeys(re.findall(r"`([^`]+)`", cells[4]), term)
    return words


@cache
def pattern_of(words: tuple[str, ...]) -> re.Pattern[str]:
    """Any of the words, as a whole word and in any case."""
    either = "|".join(map(re.escape, words))
    return re.compile(rf"(?<![A-Za-z])(?:{either})(?![A-Za-z])", re.IGNORECASE)


def findings(path: Path) -> list[str]:
    """File, line and rejected word, with the term to write instead."""
    found = []
    text = path.read_text(encoding="utf-8")
    for phrase in ORDINARY:
        text = text.replace(phrase, "")
    words = rejected_words()
    for number, line in enumerate(text.splitlines(), start=1):
        if pattern_of(tuple(words)).search(line):
            for word, term in words.items():
                if pattern_of((word,)).search(line):
                    where = path.relative_to(ROOT).as_posix()
                    found.append(f"{where}:{number}: {word!r}; write {term}")
    return found


def documents() -> list[Path]:
    paths = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "recipes").glob("*.yaml")]
    return sorted(set(paths) - {GLOSSARY})


def test_the_glossary_has_a_chinese_term_and_two_meanings_in_every_row() -> None:
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for _, line in read_page(GLOSSARY).prose
        if line.startswith("|") and not line.startswith(("|---", "| term"))
    ]
    assert len(rows) > 50
    assert [row for row in rows if len(row) != 5 or not all(row[:4])] == []
    assert [row[0] for row in rows if not re.search(r"[\u4e00-\u9fff]", row[1] + row[3])] == []
    assert len({row[0] for row in rows}) == len(rows), "one row a term"


def test_rejected_words_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"filling", "strangers", "遮罩"} <= set(rejected_words())
    page = tmp_path / "page.md"
    page.write_text(
        "fulfilling a promise\nThe Filling of a batch\nnum_strangers = 5\n注意力遮罩\n", "utf-8"
    )
    monkeypatch.setattr("tests.docs.test_glossary.ROOT", tmp_path)
    assert [one.split(":")[1] for one in findings(page)] == ["2", "3", "4"]


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_documents_use_the_terms_of_the_glossary(path: Path) -> None:
    assert findings(path) == []


def test_the_source_uses_the_terms_of_the_glossary() -> None:
    paths = [
        path for suffix in ("py", "js", "json", "html") for path in SOURCE.rglob(f"*.{suffix}")
    ]
    found = [finding for path in sorted(paths) for finding in findings(path)]
    assert found == []
