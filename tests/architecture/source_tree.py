"""Reads and parses the files of the package once for all tests of the architecture."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "headwise"
MODULES = sorted(SOURCE.rglob("*.py"))


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of the syntax tree."""
    return tuple(ast.walk(tree_of(path)))
