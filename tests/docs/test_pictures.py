"""Pictures in the guides: they are there, small, and show the page in the language of their
chapter."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide"
LARGEST = 150_000


def pictures(language: str) -> list[Path]:
    texts = (path.read_text(encoding="utf-8") for path in sorted((GUIDE / language).glob("*.md")))
    return [
        ROOT / "docs" / name
        for text in texts
        for name in re.findall(r"\]\(\.\./\.\./(pictures/[^)]+)\)", text)
    ]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pictures_of_the_page_are_in_the_readers_language_and_small(language: str) -> None:
    shown = [path for path in pictures(language) if path.name.startswith("explorer-")]
    assert len(shown) >= 8
    for path in shown:
        assert path.name.endswith(".zh.png") == (language == "zh"), path
        assert path.stat().st_size < LARGEST, path


def test_both_guides_show_the_same_pictures() -> None:
    assert [path.name for path in pictures("en")] == [
        path.name.replace(".zh.png", ".png") for path in pictures("zh")
    ]
