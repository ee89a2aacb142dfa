"""Summarises a bundle of any task in a few words, after loading it as the commands do."""

from pathlib import Path

from headwise.errors import CheckpointError
from headwise.tasks.accepted_models import task_of_bundle
from headwise.tasks.table import find_entry, task_words


def summarize_bundle(path: Path) -> str:
    """Load the whole bundle, including its weights; a HeadwiseError if it cannot be used."""
    word = task_of_bundle(path)
    entry = find_entry(word)
    if entry is None:
        known = task_words()
        raise CheckpointError(
            f"has task {str(word)[:80]!r}; this version knows {', '.join(known)}: update headwise",
            f"任务为 {str(word)[:80]!r}；此版本只认识 {'、'.join(known)}：请升级 headwise",
            file=path / "recipe.yaml",
        )
    summary: str = entry.implementation.summarize(path)
    return summary
