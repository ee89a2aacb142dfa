"""The walks through the source: their files exist, are few, and each is called by one before it."""

import ast
import re
from pathlib import Path

import pytest

from tests.docs.pages import GUIDE, ROOT

SOURCE = ROOT / "src" / "headwise"
MAX_TRANSLATE = 15


def read_walk(language: str) -> list[str]:
    """The file that each numbered item begins with."""
    page = GUIDE / language / "26-how-a-translation-is-made.md"
    return re.findall(r"^\d+\. `([\w/]+\.py)`", page.read_text(encoding="utf-8"), re.MULTILINE)


def imported_by(name: str) -> set[Path]:
    tree = ast.parse((SOURCE / name).read_text(encoding="utf-8"))
    modules = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {ROOT / "src" / f"{node.module.replace('.', '/')}.py" for node in modules}  # type: ignore[union-attr]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_translation_passes_through_few_files_that_exist(language: str) -> None:
    walk = read_walk(language)
    assert walk == read_walk("en")
    assert 2 <= len(walk) <= MAX_TRANSLATE
    assert [name for name in walk if not (SOURCE / name).is_file()] == []


def test_every_file_of_the_walk_is_imported_by_one_before_it() -> None:
    walk = read_walk("en")
    reached = {SOURCE / "cli/main.py", SOURCE / "cli/translate.py"}  # main names commands as text
    for name in walk:
        assert SOURCE / name in reached, name
        reached |= imported_by(name)
