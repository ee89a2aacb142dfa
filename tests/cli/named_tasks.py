"""Directories that say of which task they are and hold nothing else of a model: no command may come
so far as to load one.
"""

from pathlib import Path

from headwise.storage import write_manifest
from headwise.tasks.bundle_form import RECIPE
from headwise.tasks.table import find_entry


def name_task(path: Path, word: str) -> Path:
    """A recipe that names the task, and its manifest."""
    entry = find_entry(word)
    assert entry is not None
    path.mkdir(parents=True)
    (path / RECIPE).write_text(f"task: {word}\n", encoding="utf-8")
    write_manifest(path, kind=entry.form.kind)
    return path
