"""Modules of one folder form no import cycle, and a class name is defined once.

Two modules that import each other are one module in two files: neither can be read, tested or
replaced without the other. Imports inside functions count, because they only hide such a cycle;
imports for types alone (`TYPE_CHECKING`) do not. import-linter checks the layers; this test checks
all modules, those inside one folder included.

A class name has one meaning: two classes do not share it, not even if one of them is private to its
module (`Memory` and `_Memory`).
"""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.architecture.source_tree import MODULES as FILES
from tests.architecture.source_tree import SOURCE, tree_of

NOT_YET: dict[str, str] = {
    # Names that are still defined twice, and the folder that should choose another one.
}


def _module(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_module(path): path for path in FILES}


def _imports(tree: ast.AST) -> Iterator[tuple[str, str | None]]:
    """(module, name) of each import, those for types alone left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from ((node.module, alias.name) for alias in node.names)
        else:
            yield from _imports(node)


def _graph() -> dict[str, set[str]]:
    """For each module the modules of the package that it imports."""
    graph: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        found = set()
        for target, name in _imports(tree_of(path)):
            inner = f"{target}.{name}"
            found.add(inner if inner in MODULES else target)
        graph[module] = {one for one in found if one in MODULES and one != module}
    return graph


def find_cycles(graph: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """The groups of modules that reach each other (strongly connected components, Tarjan 1972)."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    waiting: list[str] = []
    cycles: set[frozenset[str]] = set()

    def visit(module: str) -> None:
        numbers[module] = lowest[module] = len(numbers)
        waiting.append(module)
        for target in sorted(graph[module]):
            if target not in numbers:
                visit(target)
                lowest[module] = min(lowest[module], lowest[target])
            elif target in waiting:
                lowest[module] = min(lowest[module], numbers[target])
        if lowest[module] == numbers[module]:
            start = waiting.index(module)
            group = frozenset(waiting[start:])
            del waiting[start:]
            if len(group) > 1:
                cycles.add(group)

    for module in graph:
        if module not in numbers:
            visit(module)
    return cycles


def test_a_cycle_would_be_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}
    assert find_cycles(graph) == {frozenset({"b", "c"})}


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert find_cycles(_graph()) == set()


def test_a_class_name_is_defined_once() -> None:
    places = defaultdict(list)
    for module, path in MODULES.items():
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(module)
    several = {name: found for name, found in places.items() if len(found) > 1}
    assert {name: found for name, found in several.items() if name not in NOT_YET} == {}
    assert set(NOT_YET) <= set(several), "listed, but defined once by now"
