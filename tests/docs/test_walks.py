"""The walks through the source: the files of each stage exist, are few, and each is imported by one
before it."""

import ast
import re
from pathlib import Path

import pytest

from tests.docs.pages import GUIDE, ROOT

SOURCE = ROOT / "src" / "headwise"

# Page, the files where it begins (main.py names commands as text), and the most files it may have.
WALKS = [
    ("26-how-a-translation-is-made", ["cli/main.py", "cli/translate.py"], 15),
    ("28-how-a-training-step-is-made", ["cli/main.py", "cli/train.py"], 25),
    ("29-how-a-request-is-answered", ["serving/uvicorn_server.py"], 12),
]


def read_walk(page: str, language: str) -> list[str]:
    """The file that each numbered item begins with."""
    text = (GUIDE / language / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r"^\d+\. `([\w/]+\.py)`", text, re.MULTILINE)


def imported_by(name: str) -> set[Path]:
    """The modules that a file imports, wherever the import stands in it, or names as text."""
    tree = ast.parse((SOURCE / name).read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = ROOT / "src" / node.module.replace(".", "/")
            found.add(module.with_suffix(".py"))
            found |= {module / f"{alias.name}.py" for alias in node.names}
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and (named := re.fullmatch(r"(headwise(?:\.\w+)+)(?::\w+)?", node.value))
        ):  # tasks/table.py names classes as text, and child processes are started by name
            found.add(ROOT / "src" / f"{named[1].replace('.', '/')}.py")
    return found


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("page", "beginning", "most"), WALKS)
def test_a_walk_passes_through_few_files_that_exist(
    page: str, beginning: list[str], most: int, language: str
) -> None:
    walk = read_walk(page, language)
    assert walk == read_walk(page, "en")
    assert walk[: len(beginning)] == beginning
    assert 2 < len(walk) <= most
    assert [name for name in walk if not (SOURCE / name).is_file()] == []


@pytest.mark.parametrize(("page", "beginning", "most"), WALKS)
def test_every_file_of_a_walk_is_imported_by_one_before_it(
    page: str, beginning: list[str], most: int
) -> None:
    reached = {SOURCE / name for name in beginning}
    for name in read_walk(page, "en"):
        assert SOURCE / name in reached, name
        reached |= imported_by(name)
