"""Outside `decoding`, generators, settings, rules and results are known, and no search from inside.

So a new way to generate costs one file in `decoding` and its line in `choices.py`.
"""

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "headwise"
KNOWN = {
    "batches",
    "choices",
    "generation_settings",
    "generator",
    "results",
    "rules.constraints",
    "rules.length_limit",
    "rules.phrases",
    "rules.text_rules",
    "search.beam",  # their settings
    "search.greedy",
    "search.length_penalty",
    "search.sampling",
}
SETTINGS_ONLY = {"search.beam", "search.greedy", "search.sampling"}


def _imports() -> list[tuple[str, str, str]]:
    """(file, module of decoding, name) of every import from outside."""
    found = []
    for path in SOURCE.rglob("*.py"):
        if path.is_relative_to(SOURCE / "decoding"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                "headwise.decoding"
            ):
                module = (node.module or "").removeprefix("headwise.decoding").removeprefix(".")
                names = [alias.name for alias in node.names]
                found += [(path.relative_to(SOURCE).as_posix(), module, name) for name in names]
    return found


def test_only_the_door_is_known_outside() -> None:
    assert [one for one in _imports() if one[1] not in KNOWN] == []


def test_of_a_search_only_its_settings_are_known_outside() -> None:
    inside = [one for one in _imports() if one[1] in SETTINGS_ONLY]
    assert [one for one in inside if not one[2].endswith("Settings")] == []
